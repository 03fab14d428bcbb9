"""Entry point of the program `sitemapd`: Ctrl-C ends it without a traceback at any moment."""

from __future__ import annotations

import gc
import signal

from deploy.cli.interrupts import INTERRUPTED, leave, leaving

_COLLECTED_AFTER = 100_000
"""Objects between two garbage collections: the imports of a command make 60,000, none of them
garbage. Collecting after every 700, as is the default, takes a twentieth of the start.
"""


def main() -> None:
    """Load the commands and run one."""
    with leaving():
        from shared.lean_imports import leave_out
        from shared.telemetry import tracing

        gc.set_threshold(_COLLECTED_AFTER)
        leave_out(*(() if tracing.wanted() else (tracing.PACKAGE,)))
        from deploy.cli.program import main as run
    try:
        run()
    except KeyboardInterrupt:
        raise SystemExit(INTERRUPTED) from None
    finally:
        # Python collects garbage once more as it ends: a seventh of the time of a command.
        gc.freeze()
        # From here on threads and finalizers end; each would print a traceback of its own.
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, leave)


if __name__ == "__main__":
    main()
