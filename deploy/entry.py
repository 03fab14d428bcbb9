"""Entry point of the program `sitemapd`: Ctrl-C during the imports ends it silently at once."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from shared import tracing

INTERRUPTED = 130
"""Exit status after Ctrl-C, as in shells."""


def main() -> None:
    """Load the commands and run one."""
    tracing.leave_out()
    with leaving():
        from deploy.cli import main as run
    try:
        run()
    except KeyboardInterrupt:
        raise SystemExit(INTERRUPTED) from None


@contextmanager
def leaving() -> Iterator[None]:
    """Let Ctrl-C end the process at once within the block, unless SIGINT is handled otherwise."""
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
    """End the process at once, before any work has begun."""
    # An exception within an import leaves partly initialized modules.
    os._exit(INTERRUPTED)


if __name__ == "__main__":
    main()
