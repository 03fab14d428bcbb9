"""What web servers do to published files is found: other bytes, redirects, silence, wrong types."""

from __future__ import annotations

import gzip
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import redis

from shared.config.settings import Settings
from shared.errors import CheckError
from shared.sitemap import shards
from shared.store.operations.checks import ERROR, CheckStore
from tests.integration.checks.examined import (
    WebServer,
    examine,
    found,
    own_server,
    web_server,
    wrong,
)
from tests.integration.conftest import RedisServer, Wait
from tests.integration.logs import silence
from tests.integration.rig import Rig
from tests.unit.worker.sources.cms import Asked, Reply, served
from worker.checks.served_files import fetch
from worker.http.exchange import SERVED
from worker.runtime import Runtime


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "public"
    root.mkdir()
    return root


@pytest.fixture
def server(root: Path) -> Iterator[tuple[WebServer, str]]:
    with web_server(root) as server:
        yield server


@pytest.fixture
def web(server: tuple[WebServer, str]) -> WebServer:
    return server[0]


@pytest.fixture
def rig(store: redis.Redis, root: Path, server: tuple[WebServer, str]) -> Rig:
    """A site of six pages in three files, served from its web root."""
    rig = Rig(store, root, base_url=server[1], robots="create", shard_urls=2)
    rig.do(*({"type": "upsert", "loc": f"{server[1]}{n}"} for n in range(6)))
    return rig


def samples(rig: Rig, check: str) -> dict[str, str]:
    finding = wrong(examine(rig, served=True)).get(check)
    base = rig.site.base_url
    return {at.where.removeprefix(base): at.detail for at in finding.samples} if finding else {}


def only(path: str, reply: Reply) -> Callable[[Asked], Reply | None]:
    return lambda asked: reply if asked.path == path else None


def test_what_is_served_as_it_was_published_is_right(rig: Rig, web: WebServer) -> None:
    assert found(rig, served=True) == {}
    assert set(web.asked) == {
        "/robots.txt", "/sitemap.xml", "/pages-1.xml", "/pages-2.xml", "/pages-3.xml"
    }  # fmt: skip


@pytest.mark.parametrize("form", shards.FORMS)
def test_the_server_of_sitemapd_up_is_right_in_every_form(
    store: redis.Redis, root: Path, form: str
) -> None:
    rigs = []

    def make(address: str) -> Rig:
        rig = Rig(store, root, base_url=address, form=form, robots="create")
        rigs.append(rig)
        return rig

    with own_server(lambda address: make(address).site):
        (rig,) = rigs
        rig.do({"type": "upsert", "loc": rig.site.base.url("a")})
        assert found(rig, served=True) == {}
        assert "pages-1." in str(CheckStore(store, "demo").seen())


@pytest.mark.parametrize("path", ["/sitemap.xml", "/pages-2.xml", "/robots.txt"])
def test_other_bytes_are_found(rig: Rig, web: WebServer, path: str) -> None:
    """A cache that holds on to an old file, another root."""
    web.instead = only(path, Reply(b"<old/>", headers={"Content-Type": "application/xml"}))

    assert samples(rig, "served") == {path[1:]: "different content than published"}


def test_a_file_with_more_behind_it_is_found(rig: Rig, web: WebServer) -> None:
    more = (rig.root / "pages-1.xml").read_bytes() + b"<!-- served by -->"
    web.instead = only("/pages-1.xml", Reply(more, headers={"Content-Type": "text/xml"}))

    assert samples(rig, "served") == {"pages-1.xml": "different content than published"}


def test_a_redirect_is_found_and_not_followed(rig: Rig, web: WebServer) -> None:
    """RELIABILITY T31."""
    headers = {"Location": f"{rig.site.base_url}elsewhere"}
    web.instead = only("/pages-1.xml", Reply(b"", 301, headers))

    said = samples(rig, "served")

    assert said == {"pages-1.xml": f"answered 301, a redirect to {rig.site.base_url}elsewhere"}
    assert "/elsewhere" not in web.asked


@pytest.mark.parametrize("status", [404, 500, 206])
def test_another_status_is_found(rig: Rig, web: WebServer, status: int) -> None:
    content = (rig.root / "sitemap.xml").read_bytes()
    web.instead = only("/sitemap.xml", Reply(content, status))

    assert samples(rig, "served") == {"sitemap.xml": f"answered {status}"}


def test_a_wrong_type_is_found(rig: Rig, web: WebServer) -> None:
    content = (rig.root / "pages-3.xml").read_bytes()
    headers = {"Content-Type": "text/html; charset=utf-8", "ETag": '"x"'}
    web.instead = only("/pages-3.xml", Reply(content, headers=headers))

    assert samples(rig, "served-type") == {"pages-3.xml": "text/html: must be application/xml"}
    assert samples(rig, "served-validators") == {}


def test_a_file_without_validators_is_found(rig: Rig, web: WebServer) -> None:
    content = (rig.root / "pages-3.xml").read_bytes()
    web.instead = only("/pages-3.xml", Reply(content, headers={"Content-Type": "text/xml"}))

    said = samples(rig, "served-validators")

    assert said == {"pages-3.xml": "neither ETag nor Last-Modified"}


@pytest.mark.parametrize(
    ("headers", "moves"),
    [
        ({"ETag": '"1"'}, False),
        ({"Last-Modified": "Sat, 21 Nov 2026 10:00:00 GMT"}, False),
        ({"ETag": "of the disk", "Last-Modified": "Sat, 21 Nov 2026 10:00:00 GMT"}, True),
    ],
)
def test_validators_that_do_not_move_with_the_bytes_are_found(
    rig: Rig, web: WebServer, headers: dict[str, str], moves: bool
) -> None:
    """RELIABILITY finding 5: whoever asks with these is told that nothing has changed."""

    def still(asked: Asked) -> Reply:
        reply = web.file(asked)
        kept = {n: v if v != "of the disk" else reply.headers["ETag"] for n, v in headers.items()}
        return reply._replace(headers={"Content-Type": reply.headers["Content-Type"], **kept})

    web.instead = still
    assert found(rig, served=True) == {}
    assert found(rig, served=True) == {}, "nothing has changed"

    rig.do({"type": "upsert", "loc": f"{rig.site.base_url}1", "lastmod": "2026-11-01"})

    changed = {f"{rig.site.base_url}{name}" for name in ("pages-1.xml", "sitemap.xml")}
    assert found(rig, served=True) == ({} if moves else {"served-validators": changed})


def test_a_robots_txt_that_only_the_server_has_is_read(rig: Rig, web: WebServer) -> None:
    """PROTOCOL R10; a proxy in front answers it, say."""
    rules = b"User-agent: *\nDisallow: /3\n"
    headers = {"Content-Type": "text/plain", "ETag": '"x"'}
    web.instead = only("/robots.txt", Reply(rules, headers=headers))

    assert samples(rig, "robots-blocked") == {
        "3": "Googlebot, Bingbot, *: robots.txt as it is served"
    }
    assert "robots-blocked" not in found(rig)


def test_an_encoded_file_is_compared_by_what_it_holds(
    store: redis.Redis, root: Path, server: tuple[WebServer, str]
) -> None:
    """It lies there as .xml.gz and is served as .xml, compressed anew or not at all."""
    web, address = server
    rig = Rig(store, root, base_url=address, form="encoded")
    rig.do({"type": "upsert", "loc": f"{address}a"})
    plain = gzip.decompress((root / "pages-1.xml.gz").read_bytes())
    headers = {"Content-Type": "application/xml", "ETag": '"x"'}
    web.instead = only("/pages-1.xml", Reply(plain, headers=headers))
    assert found(rig, served=True) == {}

    packed = Reply(gzip.compress(plain, 9), headers=headers | {"Content-Encoding": "gzip"})
    web.instead = only("/pages-1.xml", packed)
    assert found(rig, served=True) == {}

    bomb = Reply(gzip.compress(bytes(10**8)), headers=headers | {"Content-Encoding": "gzip"})
    web.instead = only("/pages-1.xml", bomb)
    assert samples(rig, "served") == {"pages-1.xml": "different content than published"}


def test_nobody_there_is_found_and_asked_thrice_at_most(store: redis.Redis, root: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{free.getsockname()[1]}/"
    rig = Rig(store, root, base_url=address, shard_urls=1)
    rig.do(*({"type": "upsert", "loc": f"{address}{n}"} for n in range(5)))

    said = samples(rig, "served")

    assert len(said) == 6
    assert sum("refused" in why for why in said.values()) == 3


def test_proxies_of_the_environment_are_not_asked(
    rig: Rig, web: WebServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RELIABILITY T22."""
    with served(lambda _: Reply(b"proxy", 502)) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy)
        monkeypatch.setenv("http_proxy", proxy)
        assert found(rig, served=True) == {}
    assert "/sitemap.xml" in web.asked


def test_an_answer_that_never_ends_is_given_up_when_the_check_is(root: Path) -> None:
    """Not after the time of an exchange: as soon as whoever waits wants to go."""
    listening, go = socket.create_server(("127.0.0.1", 0)), threading.Event()

    def drip() -> None:
        connection, _ = listening.accept()
        with connection:
            connection.sendall(b"HTTP/1.1 200 OK\r\n")
            while not go.wait(0.05):
                connection.sendall(b"X")

    thread = threading.Thread(target=drip)
    thread.start()
    calls = []

    def go_on() -> None:
        calls.append(1)
        if len(calls) > 5:
            raise CheckError("enough")

    began = time.monotonic()
    try:
        with pytest.raises(CheckError):
            fetch(f"http://127.0.0.1:{listening.getsockname()[1]}/x", 10, go_on)
        assert time.monotonic() - began < SERVED.seconds
    finally:
        go.set()
        thread.join()
        listening.close()
    assert root.exists()


def test_a_worker_that_stops_waits_for_no_web_server(
    rig: Rig, web: WebServer, redis_server: RedisServer, until: Wait
) -> None:
    """And has stored nothing: who asked is answered by the next one."""
    asked, go = threading.Event(), threading.Event()

    def hang(_: Asked) -> None:
        asked.set()
        go.wait(30)

    web.instead = hang
    plant = Runtime(Settings(redis_url=redis_server.url, sites=rig.settings.sites), "w1")
    checks = CheckStore(rig.client, rig.name)
    with silence():
        plant.start()
        try:
            checks.ask("an admin")
            until(asked.is_set, "the web server is asked")
            plant.stop()
            until(
                lambda: not rig.client.exists(rig.keys.checking, rig.keys.checking_progress),
                "the check was aborted",
                SERVED.seconds / 2,
            )
        finally:
            go.set()
            plant.stop()

    assert checks.latest() is None
    assert list(checks.asked()) == ["an admin"]


def test_a_finding_of_the_server_is_an_error(rig: Rig, web: WebServer) -> None:
    web.instead = only("/sitemap.xml", Reply(b"", 404))

    assert examine(rig, served=True).severity == ERROR
