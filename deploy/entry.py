"""The program `sitemapd`: until its parts are loaded, Ctrl-C ends it at once and without a word."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

INTERRUPTED = 130
"""Exit status of what Ctrl-C ended, as shells have it."""


def main() -> None:
    """Load the commands and run one."""
    with leaving():
        from deploy.cli import main as run
    try:
        run()
    except KeyboardInterrupt:
        raise SystemExit(INTERRUPTED) from None


@contextmanager
def leaving() -> Iterator[None]:
    """What is loaded within is left by Ctrl-C at once, unless that is ignored."""
    before = signal.getsignal(signal.SIGINT)
    ours = before is signal.default_int_handler
    if ours:
        signal.signal(signal.SIGINT, leave)
    try:
        yield
    finally:
        if ours:
            signal.signal(signal.SIGINT, before)


def leave(_number: int, _frame: FrameType | None) -> None:
    """End at once: nothing has begun."""
    # An import that is interrupted by an exception leaves traces of all that it was at.
    os._exit(INTERRUPTED)


if __name__ == "__main__":
    main()
