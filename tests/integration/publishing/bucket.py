"""A server that speaks S3 on loopback, with real conditional puts, and what it was asked for."""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BytesIO
from typing import Any, NamedTuple
from urllib.parse import unquote

import botocore.session
from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import make_server

BUCKET, PREFIX = "maps", "www"
KEYS = {"access_key_id": "AKIDEXAMPLE", "secret_access_key": "canary-secret-of-a-bucket"}


class Asked(NamedTuple):
    """One request about an object below the prefix."""

    method: str
    name: str
    status: int


class Server:
    """moto's S3 behind a door that notes every request, and refuses or delays some."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.asked: list[Asked] = []
        self.refuse: Callable[[str, str], int] = lambda _method, _name: 0
        self.slow_s = 0.0
        session = botocore.session.get_session()
        self.client: Any = session.create_client(
            "s3", region_name="us-east-1", endpoint_url=self.url,
            aws_access_key_id=KEYS["access_key_id"],
            aws_secret_access_key=KEYS["secret_access_key"],
        )  # fmt: skip

    def target(self, **options: Any) -> dict[str, Any]:
        """The table of this bucket in the configuration."""
        url = f"s3://{BUCKET}/{PREFIX}"
        return {"url": url, "endpoint": self.url, "allow_http": True, **KEYS, **options}

    def files(self) -> dict[str, bytes]:
        """Every object below the prefix, by its name."""
        found = self.client.list_objects_v2(Bucket=BUCKET, Prefix=f"{PREFIX}/").get("Contents", ())
        names = [each["Key"].removeprefix(f"{PREFIX}/") for each in found]
        return {name: self.get(name)["Body"].read() for name in names}

    def get(self, name: str) -> Any:
        return self.client.get_object(Bucket=BUCKET, Key=f"{PREFIX}/{name}")

    def put(self, name: str, content: bytes) -> None:
        self.client.put_object(Bucket=BUCKET, Key=f"{PREFIX}/{name}", Body=content)

    def remove(self, name: str) -> None:
        self.client.delete_object(Bucket=BUCKET, Key=f"{PREFIX}/{name}")

    def empty(self) -> None:
        for name in self.files():
            self.remove(name)

    def changes(self) -> list[tuple[str, str]]:
        """What was written and removed, in order."""
        return [
            ({"PUT": "write"}.get(each.method, "remove"), each.name)
            for each in self.asked
            if each.method in {"PUT", "DELETE", "POST"} and each.status < 300
        ]


def _name(environ: Any) -> str:
    path = unquote(environ["PATH_INFO"])
    return path.removeprefix(f"/{BUCKET}/{PREFIX}/") if f"/{PREFIX}/" in path else ""


@contextmanager
def serving() -> Iterator[Server]:
    """A server with an empty bucket."""
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    behind = DomainDispatcherApplication(create_backend_app)
    server: Server | None = None

    def app(environ: Any, start: Any) -> Any:
        method, name = environ["REQUEST_METHOD"], _name(environ)
        ours = server is not None and environ.get("HTTP_USER_AGENT", "").startswith("object_store")
        if not ours:
            return behind(environ, start)
        assert server is not None
        if method == "POST":  # the names of what is removed are in the body
            body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
            environ["wsgi.input"] = BytesIO(body)
            name = " ".join(re.findall(rf"<Key>{PREFIX}/([^<]+)</Key>", body.decode()))
        time.sleep(server.slow_s)
        if status := server.refuse(method, name):
            start(f"{status} Refused", [("Content-Type", "text/plain")])
            environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
            return [b"refused"]

        def noted(line: str, *rest: Any, **options: Any) -> Any:
            server.asked.append(Asked(method, name, int(line.split(maxsplit=1)[0])))
            return start(line, *rest, **options)

        return behind(environ, noted)

    http = make_server("127.0.0.1", 0, app, threaded=True)
    thread = threading.Thread(target=http.serve_forever, daemon=True)
    thread.start()
    try:
        server = Server(http.port)
        server.client.create_bucket(Bucket=BUCKET)
        yield server
    finally:
        if server is not None:
            server.empty()
            server.client.delete_bucket(Bucket=BUCKET)
        http.shutdown()
        thread.join()
