"""Every fault besides the kills."""

from __future__ import annotations

from tests.faults import (
    on_bursts,
    on_calls,
    on_files,
    on_links,
    on_power,
    on_readers,
    on_store,
    on_time,
    on_workers,
)
from tests.faults.run import Case

CASES: list[Case] = [
    *on_calls.CASES,
    *on_store.CASES,
    *on_workers.CASES,
    *on_bursts.CASES,
    *on_files.CASES,
    *on_time.CASES,
    *on_links.CASES,
    *on_power.CASES,
    *on_readers.CASES,
]
