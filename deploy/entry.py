"""The program `sitemapd`: until its parts are loaded, Ctrl-C ends it at once and without a word."""

from __future__ import annotations

import os
import signal
from types import FrameType

INTERRUPTED = 130
"""Exit status of what Ctrl-C ended, as shells have it."""


def main() -> None:
    """Load the commands and run one."""
    ignored = signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    if not ignored:
        signal.signal(signal.SIGINT, leave)
    from deploy.cli import main as run

    if not ignored:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        run()
    except KeyboardInterrupt:
        raise SystemExit(INTERRUPTED) from None


def leave(_number: int, _frame: FrameType | None) -> None:
    """End at once: nothing has begun."""
    # An import that is interrupted by an exception leaves traces of all that it was at.
    os._exit(INTERRUPTED)


if __name__ == "__main__":
    main()
