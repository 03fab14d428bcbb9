"""Command `python -m deploy.web.main HOST PORT`: the webhook and the published files of all sites,
for the configuration that SITEMAPD_CONFIG names.
"""

from __future__ import annotations

import argparse
import signal

from shared.lean_imports import leave_out
from shared.telemetry import tracing


def main() -> None:
    """Serve until SIGTERM, in one process with a few threads."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # the configuration is about to be read anyway
    parser = argparse.ArgumentParser(description="sitemapd web server")
    parser.add_argument("host")
    parser.add_argument("port", type=int)
    options = parser.parse_args()
    leave_out(*(() if tracing.wanted() else (tracing.PACKAGE,)))
    from deploy.web.server import from_environment, serve
    from shared.telemetry.logs import configure

    configure(json_lines=True, streams=True)
    serve(from_environment, (options.host, options.port))


if __name__ == "__main__":
    main()
