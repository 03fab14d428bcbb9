"""Entry point of the program `sitemapd`: Ctrl-C during the imports ends it silently at once."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

INTERRUPTED = 130
"""Exit status after Ctrl-C, as in shells."""

_COLLECTED_AFTER = 100_000
"""Objects between two garbage collections: the imports of a command make 60,000, none of them
garbage. Collecting after every 700, as is the default, takes a twentieth of the start.
"""


def main() -> None:
    """Load the commands and run one."""
    gc.set_threshold(_COLLECTED_AFTER)
    with leaving():
        from shared.lean_imports import leave_out
        from shared.telemetry import tracing

        leave_out(*(() if tracing.wanted() else (tracing.PACKAGE,)))
        from deploy.cli.program import main as run
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
