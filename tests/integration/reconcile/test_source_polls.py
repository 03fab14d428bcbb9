"""Polling of sitemaps and feeds: what did not change costs a 304, what did is listed."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator
from email.utils import formatdate
from pathlib import Path

import pytest
import redis

from shared.config.settings import Settings
from tests.integration.logs import captured
from tests.integration.rig import BASE, Rig, settings
from tests.unit.worker.sources.cms import Asked, Reply, served
from tests.unit.worker.sources.reading import urlset
from worker.loops import loop
from worker.reconcile import reconcile_scheduler
from worker.reconcile.reconcile_scheduler import ReconcileScheduler


class Files:
    """A web server with validators: ETag, or Last-Modified only."""

    def __init__(self, *, etags: bool = True, modified: str = "") -> None:
        self.files: dict[str, str] = {}
        self.etags, self.modified = etags, modified
        self.answered: list[tuple[str, int]] = []
        self.status = 200

    def __call__(self, asked: Asked) -> Reply:
        content = self.files[asked.path].encode()
        if self.status != 200:
            return Reply(b"", self.status)
        etag = f'"{hashlib.sha256(content).hexdigest()[:8]}"'
        headers = {"ETag": etag} if self.etags else {}
        same = self.etags and asked.headers.get("if-none-match") == etag
        if self.modified:
            headers["Last-Modified"] = self.modified
            same |= asked.headers.get("if-modified-since") == self.modified
        self.answered.append((asked.path, 304 if same else 200))
        return Reply(b"", 304, headers) if same else Reply(content, 200, headers)

    def seen(self) -> list[tuple[str, int]]:
        """What was answered since the last call."""
        found, self.answered = self.answered, []
        return found


def sitemap(*paths: str) -> str:
    return urlset(*(f"<loc>{BASE}{path}</loc>" for path in paths))


def feed(*paths: str) -> str:
    items = "".join(f"<item><link>{BASE}{path}</link></item>" for path in paths)
    return f'<rss version="2.0"><channel><title>T</title>{items}</channel></rss>'


@pytest.fixture
def rig(store: redis.Redis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Rig:
    monkeypatch.setattr(reconcile_scheduler, "PAUSE_S", 0.0)
    (tmp_path / "public").mkdir()
    return Rig(store, tmp_path / "public")


@pytest.fixture
def files() -> Files:
    return Files()


@pytest.fixture
def url(files: Files) -> Iterator[str]:
    with served(files) as address:
        yield address


class Poller:
    """A worker for which a reconcile is always due."""

    def __init__(self, rig: Rig, source: str) -> None:
        place = rig.root
        sites = settings(place, source=source, reconcile_hours=1e-9, shrink_share=1).sites
        self._rig = rig
        config = Settings(redis_url="redis://localhost", sites=sites)
        self._worker = ReconcileScheduler(config, rig.client, "w1", lambda _: rig.settle())

    def look(self) -> None:
        self._worker.look()

    def failing(self) -> set[str]:
        return set(self._worker.loop.failing)

    def poll(self) -> set[str]:
        """What is listed after a poll."""
        self.look()
        assert not self.failing()
        return {loc.removeprefix(BASE) for loc in self._rig.listed()}


def test_a_sitemap_that_did_not_change_costs_one_304(rig: Rig, files: Files, url: str) -> None:
    files.files["/s.xml"] = sitemap("a", "b")
    poller = Poller(rig, f"sitemap:{url}/s.xml")
    assert poller.poll() == {"a", "b"}
    assert files.seen() == [("/s.xml", 200)]
    for _ in range(3):
        assert poller.poll() == {"a", "b"}
    assert files.seen() == [("/s.xml", 304)] * 3

    files.files["/s.xml"] = sitemap("b", "c")
    assert poller.poll() == {"b", "c"}
    assert files.seen() == [("/s.xml", 200)] * 2
    poller.poll()
    assert files.seen() == [("/s.xml", 304)]


def test_an_index_says_nothing_about_the_files_it_lists(rig: Rig, files: Files, url: str) -> None:
    names = ("one.xml", "two.xml")
    files.files["/i.xml"] = (
        '<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">'
        + "".join(f"<sitemap><loc>{url}/{name}</loc></sitemap>" for name in names)
        + "</sitemapindex>"
    )
    files.files |= {"/one.xml": sitemap("a"), "/two.xml": sitemap("b")}
    poller = Poller(rig, f"{url}/i.xml")
    assert poller.poll() == {"a", "b"}
    files.seen()
    poller.poll()
    assert files.seen() == [("/i.xml", 304), ("/one.xml", 304), ("/two.xml", 304)]

    files.files["/two.xml"] = sitemap("b", "c")
    assert poller.poll() == {"a", "b", "c"}


def test_a_feed_adds_and_never_deletes(rig: Rig, files: Files, url: str) -> None:
    """It names the newest pages only; a poll of it is complete all the same."""
    rig.do(*({"type": "upsert", "loc": f"old/{n}"} for n in range(200)))
    files.files["/feed"] = feed("new-1")
    poller = Poller(rig, f"sitemap:{url}/feed")
    old = {f"old/{n}" for n in range(200)}
    assert poller.poll() == old | {"new-1"}
    files.files["/feed"] = feed("new-2")
    assert poller.poll() == old | {"new-1", "new-2"}
    files.seen()
    assert poller.poll() == old | {"new-1", "new-2"}
    assert files.seen() == [("/feed", 304)]


@pytest.mark.parametrize(("age_s", "status"), [(None, 200), (10, 200), (3600, 304)])
def test_only_validators_that_can_be_relied_on_are_used(
    rig: Rig, age_s: float | None, status: int
) -> None:
    """Last-Modified has seconds: what changed just now may change again within one."""
    modified = "" if age_s is None else formatdate(time.time() - age_s, usegmt=True)
    files = Files(etags=False, modified=modified)
    files.files["/s.xml"] = sitemap("a")
    with served(files) as url:
        poller = Poller(rig, f"{url}/s.xml")
        poller.poll()
        files.seen()
        poller.poll()
    assert files.seen() == [("/s.xml", status)]


def test_a_resync_and_a_reconcile_of_others_read_everything(
    rig: Rig, files: Files, url: str
) -> None:
    """What is listed may be wrong although the source did not change."""
    files.files["/s.xml"] = sitemap("a")
    poller = Poller(rig, f"{url}/s.xml")
    poller.poll()
    rig.do({"type": "delete", "loc": "a"})
    files.seen()

    rig.do({"type": "resync"})
    assert poller.poll() == {"a"}
    assert files.seen() == [("/s.xml", 200)]

    rig.do({"type": "delete", "loc": "a"})
    rig.resyncs.completed(rig.resyncs.begin_ms() - 1)
    assert poller.poll() == {"a"}
    assert files.seen() == [("/s.xml", 200)]


def test_a_source_that_fails_at_a_poll_is_an_error(rig: Rig, files: Files, url: str) -> None:
    files.files["/s.xml"] = sitemap("a")
    poller = Poller(rig, f"{url}/s.xml")
    poller.poll()
    files.status = 503
    with captured(loop) as logs:
        poller.look()
    assert poller.failing() == {"demo"}
    assert "503" in logs[-1]["reason"]
    assert {loc.removeprefix(BASE) for loc in rig.listed()} == {"a"}
