"""What workers say of themselves."""

from __future__ import annotations

import time
from typing import Any

from shared.store.operations.worker_registry import HeartbeatRecord


def beat(**said: Any) -> HeartbeatRecord:
    """A worker that is well; `said` is what differs."""
    usual = {
        "version": "0.1.0", "python": "3.11.2", "host": "host1", "pid": 4711,
        "started": time.time() - 7_200, "state": "working", "memory": 95_000_000, "threads": 4,
        "busy": (), "sites": ("demo", "other"), "events": 1_234, "files": 56, "clock_offset": 0.0,
    }  # fmt: skip
    return HeartbeatRecord.model_validate(usual | said)
