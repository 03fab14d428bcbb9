"""Every fault besides the kills."""

from __future__ import annotations

from tests.faults import on_store, on_workers
from tests.faults.run import Case

CASES: list[Case] = [*on_store.CASES, *on_workers.CASES]
