"""Entry point of the program `sitemapd`: Ctrl-C during the imports ends it silently at once."""

from __future__ import annotations

import gc

from deploy.cli.interrupts import INTERRUPTED, leaving

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


if __name__ == "__main__":
    main()
