"""The web server: the HTTP interface for `sitemapd run web`; for `up` the published files as well.

`python -m deploy.web.server HOST PORT` serves both for the configuration that SITEMAPD_CONFIG
names.
"""

from __future__ import annotations

import os
import signal
import socket
import stat
from collections.abc import Callable, Iterable
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from granian.constants import HTTPModes, Interfaces
from granian.http import HTTP1Settings
from granian.server import Server

from deploy.web.buffered_wsgi import BufferedWsgi
from deploy.web.static_files import StaticFiles
from shared.config.filenames import LOOKUP
from shared.config.live import LiveSettings
from shared.config.settings import Settings
from shared.errors import ServerStartError
from shared.telemetry.logs import configure
from webhook.console.authorization import MAX_FORM
from webhook.live_app import LiveApp

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

EXACT = frozenset({"/healthz", "/readyz", "/openapi.json", "/metrics", "/admin", "/v1"})
BELOW = ("/v1/", "/admin/")
"""The paths of the interface; all others are files."""

_HEADER_MS = 5000
# Seconds in which old and new processes both run after SIGUSR1. A new one that did not listen yet
# when the old one ended left a gap: 44 of 2,319 requests were refused at 0.1 s, none at 5 s.
_RESPAWN_S = 5.0
_GRACE_S = 10
_SOCKET_MODE = 0o666  # the web server has its own account; the webhook authenticates every request


def from_environment() -> LiveApp:
    """Return the application for the configuration file that SITEMAPD_CONFIG names: the interface
    under its paths, published files under all others. Raises ConfigError.
    """
    live = LiveSettings(Path(os.environ["SITEMAPD_CONFIG"]))
    configure(json_lines=True, level=live.current.log_level, traced_as="web", streams=True)
    app = LiveApp(live, beside_files)
    app.start()
    return app


def beside_files(interface: WSGIApplication, settings: Settings) -> WSGIApplication:
    """Return an application that serves `interface` under its paths, and published files."""
    files = StaticFiles(settings.sites)

    def application(environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        path = environ.get("PATH_INFO", "")
        if path in EXACT or path.startswith(BELOW):
            return interface(environ, start)
        if path.endswith(f"/{LOOKUP}") and (name := files.site_of(environ)):
            return interface(environ | {"PATH_INFO": f"/v1/sites/{name}/listed"}, start)
        return files(environ, start)

    return application


def _pass_hangups_on(server: Any) -> None:
    """Let SIGHUP reach the processes that answer, which read their configuration then; SIGUSR1
    replaces them by new ones, as Granian does at SIGHUP.
    """
    replace = server.signal_handler_reload

    def pass_on(*_: Any) -> None:
        for worker in server.wrks:
            with suppress(ProcessLookupError):
                os.kill(worker.inner.pid, signal.SIGHUP)

    server.signal_handler_reload = pass_on
    server.on_startup(lambda: signal.signal(signal.SIGUSR1, replace))


def serve(
    load_app: Callable[[], LiveApp],
    where: tuple[str, int] | Path,
    *,
    processes: int = 1,
) -> None:
    """Serve the application of `load_app` in each of `processes`, a few threads each, until
    SIGTERM.

    `where`: host and port, or the path of a unix socket, whose directory limits access. Requests in
    progress get 10 s to end. Raises ServerStartError if another process listens there.
    """
    path = where if isinstance(where, Path) else None
    if path is not None:
        clear_socket(path)
    host, port = where if isinstance(where, tuple) else ("127.0.0.1", 0)

    def load_buffered() -> BufferedWsgi:
        app = load_app()
        return BufferedWsgi(app, lambda: max(app.settings.body_limit, MAX_FORM))

    server = Server(
        "deploy.web.server",
        address=host,
        port=port,
        uds=path,
        uds_permissions=_SOCKET_MODE,
        interface=Interfaces.ASGINL,
        workers=processes,
        # An HTTP/2 client that disconnected in the middle of a body held its thread without end.
        http=HTTPModes.http1,
        websockets=False,
        http1_settings=HTTP1Settings(header_read_timeout=_HEADER_MS),
        respawn_failed_workers=True,
        respawn_interval=_RESPAWN_S,
        workers_kill_timeout=_GRACE_S,
    )
    _pass_hangups_on(server)
    # Granian's own loader searches the working directory for modules first
    server.serve(target_loader=load_buffered, wrap_loader=False)


def clear_socket(path: Path) -> None:
    """Remove a stale socket. Raises ServerStartError if a process listens on it, or it is no
    socket.
    """
    try:
        if not stat.S_ISSOCK(path.lstat().st_mode):
            raise ServerStartError(f"{path} is there and is no socket: remove it")
    except FileNotFoundError:
        return
    with closing(socket.socket(socket.AF_UNIX)) as probe:
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            path.unlink(missing_ok=True)
            return
    raise ServerStartError(f"another process listens on {path}")
