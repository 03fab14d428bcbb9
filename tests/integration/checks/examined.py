"""Checks of a site on a real store, and web servers that hand its files out, rightly or not."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from email.utils import formatdate
from pathlib import Path

from werkzeug.serving import WSGIRequestHandler, make_server

from deploy.web.static_files import TYPES, StaticFiles
from shared.config.sites.site import Site
from shared.store.operations.checks import OK, CheckFinding, CheckReport
from tests.integration.rig import Rig
from tests.unit.worker.sources.cms import Asked, Reply, served
from worker.checks.examination import Examination


def examine(rig: Rig, *, served: bool = False) -> CheckReport:
    """A check of the rig's site."""
    return Examination(rig.client, rig.name, rig.site, "test").run(by="a test", served=served)


def wrong(report: CheckReport) -> dict[str, CheckFinding]:
    """What it found; that there is no source is known."""
    return {
        each.check: each
        for each in report.findings
        if each.severity != OK and each.check != "source"
    }


def found(rig: Rig, *, served: bool = False) -> dict[str, set[str]]:
    """The names of the checks that found something, and where."""
    findings = wrong(examine(rig, served=served))
    return {name: {each.where for each in one.samples} for name, one in findings.items()}


class WebServer:
    """Hands out the files of `root`; `instead` may answer otherwise."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.instead: Callable[[Asked], Reply | None] = lambda _: None
        self.asked: list[str] = []

    def __call__(self, asked: Asked) -> Reply:
        self.asked.append(asked.path)
        return self.instead(asked) or self.file(asked)

    def file(self, asked: Asked) -> Reply:
        """What is on the disk."""
        path = self.root / asked.path.removeprefix("/")
        if not path.is_file():
            return Reply({"status": "none"}, 404)
        at = path.stat()
        return Reply(
            path.read_bytes(),
            headers={
                "Content-Type": TYPES[path.suffix], "ETag": f'"{at.st_mtime_ns:x}"',
                "Last-Modified": formatdate(at.st_mtime, usegmt=True),
            },
        )  # fmt: skip


@contextmanager
def web_server(root: Path) -> Iterator[tuple[WebServer, str]]:
    """A web server for `root`, and its address."""
    server = WebServer(root)
    with served(server) as address:
        yield server, f"{address}/"


class _Quiet(WSGIRequestHandler):
    def log_request(self, *_: object) -> None:
        pass


@contextmanager
def own_server(make: Callable[[str], Site]) -> Iterator[None]:
    """The server that `sitemapd up` serves files with, for the site at its address."""
    server = make_server("127.0.0.1", 0, StaticFiles({}), threaded=True, request_handler=_Quiet)
    server.app = StaticFiles({"demo": make(f"http://127.0.0.1:{server.server_port}/")})
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
