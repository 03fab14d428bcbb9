"""What the shipped nginx configuration promises, with the real system behind it."""

from __future__ import annotations

import gzip
import http.client
import json
import re
import socket
import threading
import time
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from contextlib import ExitStack, closing
from email.message import Message
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import pytest

from tests.system.driver import NAMESPACE, System, wait_until
from tests.system.nginx import HOST, PROGRAM, Nginx, needs

TOKEN = "only-for-these-tests"
BASE = "https://www.example.com"
SITE = """
[sites.{name}]
base_url = "{BASE}/{path}"
web_root = "public/{path}"
tokens = ["{TOKEN}"]
secrets = ["whsec_b25seS1mb3ItdGhlc2UtdGVzdHMtb25seQ=="]
robots = "{robots}"
form = "{form}"
publish_interval = 0.0
"""
CONSOLE = f"""
[console.users.admin]
token = "{TOKEN}-console"
"""
AT_ONCE = 32  # limit_conn of the shipped file
WEB_THREADS = 8
CUT_OFF_S = 20  # the shipped file says 5


class Answer(NamedTuple):
    """Of nginx, or of the webhook through it."""

    status: int
    headers: Message
    body: bytes


class Host:
    """nginx and the system behind it."""

    def __init__(self, system: System, nginx: Nginx) -> None:
        self.system, self.nginx = system, nginx

    def ask(
        self, method: str, path: str, body: object = None, *, host: str = HOST, **headers: str
    ) -> Answer:
        """One request on a connection of its own. Header names with _ for -."""
        with closing(http.client.HTTPConnection(HOST, self.nginx.port, timeout=30)) as connection:
            given = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request(method, path, body, {"Host": host, **given})
            reply = connection.getresponse()
            return Answer(reply.status, reply.headers, reply.read())

    def post(self, body: object, site: str = "demo", **headers: str) -> Answer:
        """One delivery."""
        return self.ask(
            "POST", f"/v1/sites/{site}/events", body, Authorization=f"Bearer {TOKEN}",
            Content_Type="application/json", **headers,
        )  # fmt: skip

    def open(self, said: bytes) -> socket.socket:
        """A connection on which so much was said."""
        connection = socket.create_connection((HOST, self.nginx.port), timeout=CUT_OFF_S)
        connection.sendall(said)
        return connection


HEAD = (
    f"POST /v1/sites/demo/events HTTP/1.1\r\nHost: {HOST}\r\nAuthorization: Bearer {TOKEN}\r\n"
    "Content-Type: application/json\r\n"
).encode()
STALLED_BODY = HEAD + b'Content-Length: 1000\r\n\r\n{"type":'


def event(path: str, **more: str) -> bytes:
    return json.dumps({"type": "upsert", "loc": f"{BASE}/{path}", **more}).encode()


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Host]:
    needs(PROGRAM)
    home = tmp_path_factory.mktemp("host") / "home"
    (home / "public").mkdir(parents=True)
    forms = {"demo": ("", "xml"), "gz": ("gz/", "xml.gz"), "packed": ("packed/", "encoded")}
    (home / "sitemapd.toml").write_text(
        "".join(
            SITE.format(
                name=name, path=path, form=form, BASE=BASE, TOKEN=TOKEN,
                robots="off" if path else "create",
            )
            for name, (path, form) in forms.items()
        )
        + CONSOLE
        + "[sites.demo.outputs]\nchange_list = true\nhtml = true\n"
    )  # fmt: skip
    system = System(home)
    system.start()
    nginx = Nginx(home.parent / "nginx", system.root, urlsplit(system.address).netloc)
    nginx.start()
    host = Host(system, nginx)
    for name, (path, _) in forms.items():
        assert host.post(event(f"{path}a"), name).status == 202
    for name in ("sitemap.xml", "robots.txt", "gz/sitemap.xml", "packed/sitemap.xml"):
        wait_until((system.root / name).exists, f"{name} is published")
    yield host
    nginx.stop()
    assert system.stop() == 0


@pytest.mark.parametrize(
    ("path", "kind", "coding"),
    [
        ("/sitemap.xml", "application/xml", None),
        ("/pages-1.xml", "application/xml", None),
        ("/gz/pages-1.xml.gz", "application/gzip", None),
        ("/packed/pages-1.xml", "application/xml", "gzip"),
        ("/robots.txt", "text/plain; charset=utf-8", None),
        ("/changelist.xml", "application/xml", None),
        ("/.well-known/resourcesync", "application/xml", None),
        ("/sitemap-contents.html", "text/html; charset=utf-8", None),
        ("/sitemap-contents.css", "text/css; charset=utf-8", None),
        ("/sitemap.css", "text/css; charset=utf-8", None),
        ("/sitemap.html", "text/html; charset=utf-8", None),
        ("/packed/sitemap.html", "text/html; charset=utf-8", None),
    ],
)
def test_each_form_has_its_type_and_its_tag(
    host: Host, path: str, kind: str, coding: str | None
) -> None:
    found = host.ask("GET", path, Accept_Encoding="gzip")

    assert (found.status, found.headers["Content-Type"]) == (200, kind)
    assert found.headers["Content-Encoding"] == coding
    assert int(found.headers["Content-Length"]) == len(found.body)
    packed = coding or path.endswith(".gz")
    text = gzip.decompress(found.body) if packed else found.body
    if "pages" in path:
        assert ET.fromstring(text).tag == f"{NAMESPACE}urlset"
    assert found.headers["Server"] == "nginx"
    again = host.ask("GET", path, Accept_Encoding="gzip", If_None_Match=found.headers["ETag"])
    assert (again.status, again.body) == (304, b"")
    assert host.ask("HEAD", path, Accept_Encoding="gzip").body == b""


def test_the_page_for_people_may_not_be_framed(host: Host) -> None:
    found = host.ask("GET", "/gz/sitemap.html")

    assert found.headers["Content-Security-Policy"] == "frame-ancestors 'none'"
    assert found.headers["X-Content-Type-Options"] == "nosniff"


def test_who_takes_no_gzip_gets_an_encoded_file_unpacked(host: Host) -> None:
    found = host.ask("GET", "/packed/pages-1.xml", Accept_Encoding="identity")

    assert (found.status, found.headers["Content-Encoding"]) == (200, None)
    assert found.headers["Content-Type"] == "application/xml"
    assert found.headers["Vary"] == "Accept-Encoding"
    assert ET.fromstring(found.body).tag == f"{NAMESPACE}urlset"


@pytest.mark.parametrize(
    "path",
    [
        "/.sitemapd", "/%2esitemapd", "/gz/.sitemapd", "/.sitemapd-0123", "/x/../.sitemapd", "/",
        "/missing.xml", "/metrics",
    ],
)  # fmt: skip
def test_what_is_not_published_is_not_there(host: Host, path: str) -> None:
    (host.system.root / ".sitemapd-0123").write_bytes(b"not finished")
    assert (host.system.root / "gz" / ".sitemapd").exists()

    assert host.ask("GET", path).status == 404


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "PROPFIND"])
def test_files_can_only_be_read(host: Host, method: str) -> None:
    found = host.ask(method, "/sitemap.xml")

    assert (found.status, found.headers["Allow"]) == (405, "GET, HEAD")


def test_a_link_in_the_web_root_leads_nowhere(host: Host) -> None:
    link = host.system.root / "linked.txt"
    link.symlink_to(host.system.home / "sitemapd.toml")

    found = host.ask("GET", "/linked.txt")

    assert found.status in {403, 404}
    assert TOKEN.encode() not in found.body
    link.unlink()


def test_an_unknown_host_gets_no_answer(host: Host) -> None:
    for path in ("/sitemap.xml", "/readyz"):
        with pytest.raises(http.client.RemoteDisconnected):
            host.ask("GET", path, host="evil.example")


def test_the_webhook_and_the_console_are_behind_their_paths(host: Host) -> None:
    assert host.ask("GET", "/readyz").status == 200
    assert host.ask("GET", "/healthz").status == 200
    assert "openapi" in json.loads(host.ask("GET", "/openapi.json").body)
    for path in ("/admin", "/admin/"):
        console = host.ask("GET", path)
        assert (console.status, console.headers["Location"]) == (303, "/admin/login")
    login = host.ask("GET", "/admin/login")
    assert login.status == 200
    assert "frame-ancestors 'none'" in login.headers["Content-Security-Policy"]
    assert login.headers["Cache-Control"] == "no-store"
    (style,) = re.findall(r'href="([^"]+\.css)"', login.body.decode())
    assert "immutable" in host.ask("GET", style).headers["Cache-Control"]


def test_what_stalls_is_cut_off_and_keeps_nobody_waiting(host: Host) -> None:
    """RELIABILITY T12: more slow bodies than the webhook has threads, and slow headers beside."""
    with ExitStack() as opened:
        slow = [
            opened.enter_context(closing(host.open(said)))
            for said in (STALLED_BODY, HEAD) * (WEB_THREADS + 4)
        ]
        began = time.monotonic()
        answers = [host.post(event(f"while-others-stall-{n}")).status for n in range(3)]

        assert answers == [202, 202, 202]
        for connection in slow:
            connection.settimeout(max(0.1, CUT_OFF_S - (time.monotonic() - began)))
            said = connection.recv(100)
            assert said == b"" or b" 408 " in said


def test_one_address_has_so_many_requests_at_once_and_no_more(host: Host) -> None:
    with ExitStack() as opened:
        for _ in range(AT_ONCE):
            opened.enter_context(closing(host.open(STALLED_BODY)))

        def refused() -> Answer | None:
            found = host.post(event("one-too-many"))
            return found if found.status == 429 else None

        wait_until(refused, "one more is refused", 4)
        found = refused()
        assert found is not None
        assert found.headers["Retry-After"] == "1"
        assert found.headers["Content-Type"] == "application/problem+json"
        assert json.loads(found.body)["status"] == 429

    wait_until(lambda: host.post(event("a-later-one")).status == 202, "others gone, it is taken")


def test_a_body_in_chunks_is_taken_whole_and_its_limit_holds(host: Host) -> None:
    body = event("in-chunks")
    assert host.post(iter([body[:9], body[9:]])).status == 202

    too_long = host.post(iter([b" " * 100_000] * 12))

    assert too_long.status == 413


def test_a_body_of_the_limit_is_read_and_a_longer_one_refused_in_the_same_form(host: Host) -> None:
    longest = event("longest").ljust(1_048_576)
    assert host.post(longest).status == 202

    found = host.post(longest + b" ")

    assert found.status == 413
    assert found.headers["Content-Type"] == "application/problem+json"
    assert json.loads(found.body)["status"] == 413


class Mortal:
    """A webhook that dies of its second request: it has read it, and closes without an answer."""

    def __init__(self) -> None:
        self.seen = 0
        self._socket = socket.create_server((HOST, 0))
        self.where = f"{HOST}:{self._socket.getsockname()[1]}"
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            with connection:
                while b"}" in (connection.recv(65536)):
                    self.seen += 1
                    if self.seen > 1:
                        break
                    connection.sendall(b"HTTP/1.1 202 Accepted\r\nContent-Length: 2\r\n\r\n{}")

    def die(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join(10)


def test_a_delivery_whose_answer_was_lost_is_not_sent_twice(host: Host, tmp_path: Path) -> None:
    mortal = Mortal()
    nginx = Nginx(tmp_path / "nginx", host.system.root, mortal.where)
    nginx.start()
    try:
        other = Host(host.system, nginx)
        assert other.post(event("a")).status == 202

        lost = other.post(event("b"))

        assert mortal.seen == 2
        assert (lost.status, lost.headers["Retry-After"]) == (503, "5")
        assert json.loads(lost.body)["status"] == 503
        mortal.die()
        gone = other.post(event("c"))
        assert (gone.status, gone.headers["Retry-After"]) == (503, "5")
        assert other.ask("GET", "/sitemap.xml").status == 200
    finally:
        nginx.stop()


def test_a_killed_webhook_costs_a_sender_a_503_and_no_event_is_doubled(host: Host) -> None:
    killed, statuses = host.system.pid("web"), set[int]()
    host.system.kill("web")

    def taken() -> bool:
        found = host.post(event("through-a-kill"), Webhook_Id="msg_through-a-kill")
        statuses.add(found.status)
        return found.status in {200, 202} and host.system.pid("web") != killed

    wait_until(taken, "it is taken again, by a successor")

    assert statuses <= {503, 202, 200}  # 200: stored, and killed before it could say so
    page = f"{BASE}/through-a-kill"
    wait_until(lambda: page in host.system.published(), "it is published, once")


@pytest.mark.timeout(180)
def test_no_reader_sees_a_torn_file_while_others_publish(host: Host) -> None:
    """RELIABILITY N3, F25."""
    faults: list[str] = []
    reads = 0
    done = threading.Event()

    def read() -> None:
        nonlocal reads
        while not done.is_set():
            try:
                index = host.ask("GET", "/sitemap.xml")
                for loc in ET.fromstring(index.body).iter(f"{NAMESPACE}loc"):
                    shard = host.ask("GET", urlsplit(loc.text or "").path)
                    assert shard.status == 200
                    ET.fromstring(shard.body)
                    reads += 2
            except (AssertionError, ET.ParseError, http.client.HTTPException, OSError) as error:
                faults.append(repr(error))

    def published() -> str | None:
        return host.system.published().get(f"{BASE}/while-read")

    reader = threading.Thread(target=read)
    reader.start()
    try:
        for n in range(30):
            day = f"2026-01-{n + 1:02}"
            assert host.post(event("while-read", lastmod=day)).status == 202
            wait_until(lambda day=day: published() == day, f"{day} is published")
    finally:
        done.set()
        reader.join()

    print(f"30 publishes, {reads} reads, torn {len(faults)}")
    assert faults == []
    assert reads >= 30
