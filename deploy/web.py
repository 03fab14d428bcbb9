"""What `sitemapd up` serves: the interface, and beside it the sites' published files.

`python -m deploy.web HOST PORT` serves the configuration that SITEMAPD_CONFIG names.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from granian.constants import Interfaces
from granian.http import HTTP1Settings
from granian.server import Server

from deploy.webroot import Files
from shared.settings import Settings, load
from shared.telemetry import configure
from webhook.app import create_app

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

EXACT = frozenset({"/healthz", "/readyz", "/openapi.json", "/metrics", "/admin", "/v1"})
BELOW = ("/v1/", "/admin/")
"""The paths of the interface; all others are files."""

_THREADS = 8
_HEADER_MS = 5000
_RESPAWN_S = 0.1


def from_environment() -> WSGIApplication:
    """The application for the configuration file that SITEMAPD_CONFIG names."""
    configure(json_lines=True)
    return create(load(Path(os.environ["SITEMAPD_CONFIG"])))


def create(settings: Settings) -> WSGIApplication:
    """The interface under its own paths, published files under all others."""
    interface: WSGIApplication = create_app(settings)
    files = Files(settings.sites.values())

    def application(environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        path = environ.get("PATH_INFO", "")
        chosen = interface if path in EXACT or path.startswith(BELOW) else files
        return chosen(environ, start)

    return application


def main() -> None:
    """Serve until SIGTERM, in one process with a few threads."""
    parser = argparse.ArgumentParser(description="sitemapd web server")
    parser.add_argument("host")
    parser.add_argument("port", type=int)
    options = parser.parse_args()
    server = Server(
        "deploy.web",
        address=options.host,
        port=options.port,
        interface=Interfaces.WSGI,
        blocking_threads=_THREADS,
        websockets=False,
        http1_settings=HTTP1Settings(header_read_timeout=_HEADER_MS),
        respawn_failed_workers=True,
        respawn_interval=_RESPAWN_S,
    )
    # its own loader would search the working directory for modules first
    server.serve(target_loader=from_environment, wrap_loader=False)


if __name__ == "__main__":
    main()
