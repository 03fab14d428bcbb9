"""One index of several hosts: real files, and robots.txt as a real server gives it."""

from __future__ import annotations

import functools
import http.server
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import redis
from lxml import etree

from shared.config.settings import Settings
from shared.store.keys import keys_of
from shared.store.leases import held_lease
from shared.store.publishing.cross_submission import CrossSubmission
from tests.integration.logs import silence
from tests.integration.rig import BASE, SCHEMA, Rig, restarted
from worker.checks.examination import Examination
from worker.publishing.followers.follow_service import followers_of
from worker.publishing.upkeep.cross_submitter import CONSENT_MS, CrossSubmitter

INDEX = f"{BASE}sitemap-hosts.xml"
NAMED = f"Sitemap: {INDEX}\n"
NS = "{http://www.sitemaps.org/schemas/sitemap/0.9}"


class Host(NamedTuple):
    """A web server of the directory `root` at the address `base`."""

    base: str
    root: Path
    asked: list[str]
    down: threading.Event

    def robots(self, text: str) -> None:
        (self.root / "robots.txt").write_text(text)


class Handler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        self.server.asked.append(self.path)  # type: ignore[attr-defined]
        if self.server.down.is_set():  # type: ignore[attr-defined]
            self.send_error(503)
        else:
            super().do_GET()


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[[str], Host]]:
    servers = []

    def started(name: str) -> Host:
        root = tmp_path / name
        root.mkdir()
        handler = functools.partial(Handler, directory=str(root))
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        server.asked = asked = []  # type: ignore[attr-defined]
        server.down = down = threading.Event()  # type: ignore[attr-defined]
        threading.Thread(target=server.serve_forever, args=[0.01], daemon=True).start()
        servers.append(server)
        return Host(f"http://127.0.0.1:{server.server_port}/", root, asked, down)

    yield started
    for server in servers:
        server.shutdown()
        server.server_close()


class Hosts:
    """The site `demo` with the index, others with servers, and the worker that looks after them."""

    def __init__(self, store: redis.Redis, root: Path, **options: Any) -> None:
        self.store, self.now_ms = store, 1_800_000_000_000
        self.demo = Rig(store, root, **options)
        self.sites = {"demo": self.demo.site}
        self.submitter: CrossSubmitter | None = None

    def add(self, name: str, host: Host, **options: Any) -> Rig:
        rig = Rig(self.store, host.root, name=name, base_url=host.base, **options)
        self.sites[name] = rig.site
        return rig

    def shop(self, host: Host) -> None:
        """List a page on `demo` and one on the site `shop` of a host that consents, and look."""
        host.robots(NAMED)
        self.demo.do({"type": "upsert", "loc": "a"})
        self.add("shop", host).do({"type": "upsert", "loc": f"{host.base}b"})
        self.look()

    def look(self) -> None:
        """Let the worker look once, and publish what it asks for."""
        if self.submitter is None:
            self.submitter = self.made()
        with silence():
            self.submitter.look()
        self.demo.settle()

    def follow(self) -> None:
        """Let the worker follow other settings."""
        assert self.submitter is not None
        self.submitter.prepare(Settings(sites=self.sites))()

    def made(self, owner: str = "w1") -> CrossSubmitter:
        settings = Settings(sites=self.sites)
        return CrossSubmitter(settings, self.store, owner, clock=lambda: self.now_ms)

    def troubles(self) -> dict[str, str]:
        assert self.submitter is not None
        return {each.part: each.reason for each in self.submitter.loop.troubles()}

    def listed(self) -> list[str]:
        """The files that sitemap-hosts.xml lists, in order; the site itself is right besides."""
        self.demo.check()
        path = self.demo.root / "sitemap-hosts.xml"
        if not path.exists():
            return []
        tree = etree.fromstring(path.read_bytes())
        assert SCHEMA["sitemapindex"].validate(tree), SCHEMA["sitemapindex"].error_log
        return [loc.text for loc in tree.iter(f"{NS}loc")]


OUTPUTS = {"hosts": ["shop", "blog"]}


@pytest.fixture
def hosts(store: redis.Redis, tmp_path: Path) -> Hosts:
    return Hosts(store, tmp_path / "public", outputs=OUTPUTS)


def test_only_hosts_whose_robots_txt_names_the_index_are_listed(
    hosts: Hosts, serve: Callable[[str], Host]
) -> None:
    shop, blog = serve("shop"), serve("blog")
    shop.robots(f"User-agent: *\nDisallow: /cart\n{NAMED}")
    blog.robots("Sitemap: https://elsewhere.example/sitemap-hosts.xml\n")
    hosts.demo.do({"type": "upsert", "loc": "a"})
    for name, host in (("shop", shop), ("blog", blog)):
        hosts.add(name, host).do({"type": "upsert", "loc": f"{host.base}b"})
    hosts.look()

    assert hosts.listed() == [f"{BASE}pages-1.xml", f"{shop.base}pages-1.xml"]
    assert set(hosts.troubles()) == {"blog"}
    assert f"Add the line Sitemap: {INDEX}" in hosts.troubles()["blog"]
    report = Examination(hosts.store, "demo", hosts.demo.site, "w1").run(served=False)
    (found,) = [each for each in report.findings if each.check == "not-named"]
    assert [(each.where, each.detail) for each in found.samples] == [("blog", INDEX)]


def test_what_another_site_publishes_is_in_the_index_after_the_next_look(
    hosts: Hosts, serve: Callable[[str], Host]
) -> None:
    host = serve("shop")
    host.robots(NAMED)
    hosts.demo.do({"type": "upsert", "loc": "a"})
    shop = hosts.add("shop", host, sections={"sale": {}}, shard_urls=2, index_shards=1)
    hosts.look()
    assert hosts.listed() == [f"{BASE}pages-1.xml"]

    shop.do(*({"type": "upsert", "loc": f"{host.base}{n}"} for n in range(3)))
    shop.do({"type": "upsert", "loc": f"{host.base}s", "section": "sale"})
    hosts.look()
    assert hosts.listed()[1:] == [
        host.base + name for name in ("pages-1.xml", "pages-2.xml", "sale-1.xml")
    ]
    shop.do({"type": "delete", "loc": f"{host.base}s"})
    hosts.look()
    assert hosts.listed()[1:] == [f"{host.base}pages-1.xml", f"{host.base}pages-2.xml"]
    assert host.asked == ["/robots.txt"], "once an hour is enough"


def test_nothing_is_written_while_nobody_publishes(
    hosts: Hosts, serve: Callable[[str], Host]
) -> None:
    host = serve("shop")
    hosts.shop(host)
    publishes = hosts.demo.state.known_run().publishes
    for _ in range(3):
        hosts.look()

    assert hosts.demo.state.known_run().publishes == publishes


def test_consent_that_is_withdrawn_counts_within_the_hour(
    hosts: Hosts, serve: Callable[[str], Host]
) -> None:
    host = serve("shop")
    hosts.shop(host)
    assert len(hosts.listed()) == 2

    (host.root / "robots.txt").unlink()
    hosts.look()
    assert len(hosts.listed()) == 2, "asked an hour ago at most"
    hosts.now_ms += CONSENT_MS + 1
    hosts.look()
    assert hosts.listed() == [f"{BASE}pages-1.xml"]
    host.robots(NAMED)
    hosts.submitter = None  # another worker, which does not know that it was asked for in vain
    hosts.look()
    assert len(hosts.listed()) == 2


def test_a_host_that_cannot_be_asked_stays_as_it_was(
    hosts: Hosts, serve: Callable[[str], Host]
) -> None:
    host = serve("shop")
    hosts.shop(host)
    host.down.set()
    hosts.submitter, hosts.now_ms = None, hosts.now_ms + CONSENT_MS + 1
    hosts.look()

    assert host.asked == ["/robots.txt"] * 2
    assert len(hosts.listed()) == 2
    assert hosts.troubles()["shop"] == f"{host.base}robots.txt answers 503"


def test_another_address_of_a_site_is_asked_anew(
    hosts: Hosts, serve: Callable[[str], Host]
) -> None:
    host, other = serve("shop"), serve("other")
    host.robots(NAMED)
    hosts.demo.do({"type": "upsert", "loc": "a"})
    shop = hosts.add("shop", host, shard_urls=1)
    shop.do(*({"type": "upsert", "loc": f"{host.base}{n}"} for n in range(3)))
    hosts.look()
    assert len(hosts.listed()) == 4

    restarted(shop, base_url=host.base, shard_urls=1, index_shards=1)
    hosts.sites["shop"] = shop.site.model_copy(update={"index_shards": 1})
    hosts.follow()
    hosts.look()
    assert len(hosts.listed()) == 4, "its lines are spread over other index files"
    hosts.sites["shop"] = shop.site.model_copy(update={"base_url": other.base})
    hosts.follow()
    hosts.look()
    assert hosts.listed() == [f"{BASE}pages-1.xml"], "the new host has not consented"
    assert other.asked == ["/robots.txt"]


def test_a_name_that_no_site_has_is_shown(hosts: Hosts, serve: Callable[[str], Host]) -> None:
    host = serve("shop")
    hosts.shop(host)

    assert hosts.troubles() == {"blog": "outputs.hosts names blog, and no site has that name"}
    assert len(hosts.listed()) == 2


def test_a_site_below_the_index_on_the_same_host_needs_no_consent(
    hosts: Hosts, tmp_path: Path
) -> None:
    hosts.demo.do({"type": "upsert", "loc": "a"})
    below = Rig(hosts.store, tmp_path / "blog", name="blog", base_url=f"{BASE}blog/")
    hosts.sites["blog"] = below.site
    below.do({"type": "upsert", "loc": f"{BASE}blog/b"})
    hosts.look()

    assert hosts.listed() == [f"{BASE}pages-1.xml", f"{BASE}blog/pages-1.xml"]


def test_the_file_goes_when_it_is_switched_off(hosts: Hosts, serve: Callable[[str], Host]) -> None:
    host = serve("shop")
    hosts.shop(host)
    off = restarted(hosts.demo)
    off.do({"type": "upsert", "loc": "c"})
    off.audit().rebuild()

    assert not (off.root / "sitemap-hosts.xml").exists()
    assert CrossSubmission(hosts.store, "demo").records() == {}
    off.check()


def test_an_index_of_others_with_that_name_stays_while_it_is_off(
    store: redis.Redis, tmp_path: Path
) -> None:
    rig = Rig(store, tmp_path / "public")
    rig.do({"type": "upsert", "loc": "a"})
    theirs = (
        b'<?xml version="1.0" encoding="UTF-8"?>\n'
        b'<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n'
        b"\t<sitemap>\n\t\t<loc>https://shop.example/a.xml</loc>\n\t</sitemap>\n</sitemapindex>\n"
    )
    path = rig.root / "sitemap-hosts.xml"
    path.write_bytes(theirs)
    rig.audit().rebuild()

    assert path.read_bytes() == theirs
    rig.check()


def test_every_target_has_the_index(
    store: redis.Redis, tmp_path: Path, serve: Callable[[str], Host]
) -> None:
    other, host = tmp_path / "second", serve("shop")
    other.mkdir()
    host.robots(NAMED)
    targets = [{"url": str(other), "name": "second"}]
    hosts = Hosts(store, tmp_path / "public", outputs=OUTPUTS, targets=targets)
    hosts.demo.do({"type": "upsert", "loc": "a"})
    shop = hosts.add("shop", host)
    hosts.look()
    shop.do({"type": "upsert", "loc": f"{host.base}b"})
    hosts.look()
    for follower in followers_of(store, "demo", hosts.demo.site, "w1"):
        while follower.tick():
            pass

    assert len(hosts.listed()) == 2
    name = "sitemap-hosts.xml"
    assert (other / name).read_bytes() == (hosts.demo.root / name).read_bytes()


def test_one_worker_looks_at_a_time(hosts: Hosts, serve: Callable[[str], Host]) -> None:
    host = serve("shop")
    host.robots(NAMED)
    hosts.demo.do({"type": "upsert", "loc": "a"})
    hosts.add("shop", host)
    with held_lease(hosts.store, keys_of("demo").hosts_lease, "w2") as lease:
        assert lease is not None
        hosts.look()
        assert host.asked == []
    hosts.look()
    assert host.asked == ["/robots.txt"]
