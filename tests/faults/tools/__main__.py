"""Try each tool for real: `python -m tests.faults.tools`, as root; exit code 1 if one is broken."""

from __future__ import annotations

import sys
import tempfile
import time
import traceback
from pathlib import Path

from tests.faults.tools import check, needs


def main() -> int:
    """One line for each tool: what was seen, or what is wrong."""
    for todo in needs.missing():
        print(f"missing: {todo}")
    broken = 0
    for name, tried in check.ALL.items():
        began = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="faults-") as directory:
            try:
                said = tried(Path(directory))
            except Exception as error:  # noqa: BLE001 - each tool is tried, whatever the others do
                broken += 1
                said = f"BROKEN: {error!r}"
                traceback.print_exc()
        print(f"{name:<14} {said} ({time.monotonic() - began:.1f} s)", flush=True)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
