"""The guard process: waits until its supervisor has ended, and ends the processes that it left.

`python -m deploy.local.orphan_reaper RUN PIDS` with a pipe as standard input, of which the
supervisor holds the other end: the kernel closes it even after SIGKILL.
"""

from __future__ import annotations

import sys
from pathlib import Path

from deploy.local.processes import reap, reap_listed


def main(run: str, pids: Path) -> None:
    """Return once the supervisor and every process of its run have ended."""
    while sys.stdin.buffer.read(4096):
        pass
    if Path("/proc/self/environ").exists():
        reap(run)
    else:
        reap_listed(pids)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
