"""The least that takes a delivery: a bare Flask route that does one durable XADD of its body.

`python -m tests.bench.bare_route HOST PORT REDIS`: behind the same server as the webhook, with the
same options, for the configuration that SITEMAPD_CONFIG names.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from flask import Flask, Response, request

from deploy.web.server import serve
from shared.config.settings import FILE, load
from shared.store.connection import connect
from tests.bench.bed import server
from tests.bench.service import ROOT, Service, until

PATH = "/events"


class BareFlask(Flask):
    """Flask with the settings that the server asks for its limit of bodies."""

    def __init__(self) -> None:
        super().__init__("bare", static_folder=None)
        self.settings = load(Path(os.environ["SITEMAPD_CONFIG"]))


def create(url: str) -> BareFlask:
    """The application; `url` is that of its Redis."""
    app, client = BareFlask(), connect(url, 5.0)

    @app.post(PATH)
    def take() -> Response:
        client.xadd("bare", {"e": request.get_data(cache=False)})
        return Response('{"accepted":1}', 202, content_type="application/json")

    return app


@contextmanager
def bare_route(running: Service) -> Iterator[str]:
    """The address of the route in a process of its own, with a Redis of its own, beside `running`,
    whose limit of bodies it takes.
    """
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    with server() as client:
        url = f"unix://{client.connection_pool.connection_kwargs['path']}"
        environment = {"PYTHONPATH": str(ROOT), "SITEMAPD_CONFIG": str(running.home / FILE)}
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.bench.bare_route", "127.0.0.1", str(port), url],
            env=os.environ | environment, cwd=ROOT, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            until(lambda: _answers(port))
            yield f"127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait()


def _answers(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1.0):
        return True
    return False


if __name__ == "__main__":
    _, host, given, store = sys.argv
    serve(lambda: create(store), (host, int(given)))
