"""Several targets of one site: whichever is written first, all of them end in the same bytes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from deploy.doctor.runner import Case, DoctorFinding, ok
from deploy.doctor.work import CHECKS
from shared.config.sites.targets import HOST
from shared.errors import PublishError
from shared.store.round_trips import read
from shared.store.targets.target_state import records_reading
from tests.integration.publishing import bucket
from tests.integration.rig import Rig
from worker.publishing.followers.follower import Follower

HOSTS = ("web1", "web2")
PRIVATE = {".sitemapd"}


@pytest.fixture(scope="module")
def server() -> Iterator[bucket.Server]:
    with bucket.serving() as found:
        yield found


@pytest.fixture
def storage(server: bucket.Server) -> Iterator[bucket.Server]:
    server.asked.clear()
    yield server
    server.refuse, server.slow_s = (lambda _method, _name: 0), 0.0
    server.empty()


class Hosts:
    """A site with a directory on each of two hosts, and perhaps a bucket."""

    def __init__(
        self, store: redis.Redis, home: Path, monkeypatch: pytest.MonkeyPatch,
        further: tuple[dict[str, Any], ...] = (), **options: Any,
    ) -> None:  # fmt: skip
        self._patch, self._home, self._store = monkeypatch, home, store
        self._targets = (*({"url": str(home / host), "host": host} for host in HOSTS), *further)
        self._options = options | {"shard_urls": 2, "robots": "create"}
        self.rig = self.on("web1")

    def on(self, host: str) -> Rig:
        """The site as a worker of this host has it."""
        self._patch.setenv(HOST, host)
        given = {**self._options, "targets": self._targets}
        return Rig(self._store, self._home / host, **given)

    def do(self, host: str, *items: dict[str, Any]) -> None:
        self.on(host).do(*items)

    def follower(self, name: str) -> Follower:
        site = self.rig.site
        settings = next(each for each in site.every_target if each.ident == name)
        return Follower(self._store, "demo", site, settings, f"follower-{name}")

    def follow(self, *names: str) -> None:
        for name in names:
            while self.follower(name).tick():
                pass

    def files(self, host: str) -> dict[str, bytes]:
        found = (self._home / host).iterdir() if (self._home / host).is_dir() else ()
        return {each.name: each.read_bytes() for each in found if each.name not in PRIVATE}

    def records(self) -> Any:
        return read(self._store, records_reading("demo"))


@pytest.fixture
def hosts(store: redis.Redis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Hosts:
    return Hosts(store, tmp_path, monkeypatch)


def upsert(loc: str, **members: Any) -> dict[str, Any]:
    return {"type": "upsert", "loc": loc, **members}


def delete(loc: str) -> dict[str, Any]:
    return {"type": "delete", "loc": loc}


def test_a_follower_ends_in_the_same_bytes_and_dates(hosts: Hosts, tmp_path: Path) -> None:
    hosts.do("web1", *(upsert(f"p/{n}") for n in range(5)))
    assert hosts.files("web2") == {}

    hosts.follow("web2")

    assert hosts.files("web1") == hosts.files("web2")
    for name in ("pages-1.xml", "pages-3.xml"):
        times = [(tmp_path / host / name).stat().st_mtime for host in HOSTS]
        assert times[0] == times[1]
    hosts.on("web2").check()


def test_a_follower_writes_what_changed_and_nothing_else(hosts: Hosts, tmp_path: Path) -> None:
    hosts.do("web1", *(upsert(f"p/{n}") for n in range(5)))
    hosts.follow("web2")
    before = {each.name: each.stat().st_ino for each in (tmp_path / "web2").iterdir()}

    hosts.do("web1", upsert("p/0", lastmod="2020-01-01"))
    hosts.follow("web2")

    after = {each.name: each.stat().st_ino for each in (tmp_path / "web2").iterdir()}
    assert {name for name in after if before.get(name) != after[name]} == {
        "pages-1.xml", "sitemap.xml",
    }  # fmt: skip
    assert hosts.files("web1") == hosts.files("web2")


def test_any_host_leads_and_makes_up_first_for_what_it_lacks(hosts: Hosts) -> None:
    for n in range(8):
        hosts.do(HOSTS[n % 2], upsert(f"p/{n}"), delete(f"p/{n - 3}"))
        leader = hosts.on(HOSTS[n % 2])
        assert set(leader.listed()) == {
            f"https://www.example.com/p/{each}" for each in range(max(0, n - 2), n + 1)
        }
        leader.check()
    hosts.follow(*HOSTS)

    assert hosts.files("web1") == hosts.files("web2")


def test_what_is_removed_leaves_every_target(hosts: Hosts) -> None:
    hosts.do("web1", *(upsert(f"p/{n}") for n in range(5)))
    hosts.follow("web2")

    hosts.do("web1", delete("p/0"), delete("p/1"))
    hosts.follow("web2")

    assert "pages-1.xml" not in hosts.files("web2")
    assert hosts.files("web1") == hosts.files("web2")


def test_a_directory_that_was_lost_is_written_anew_by_its_own_host(
    hosts: Hosts, tmp_path: Path
) -> None:
    hosts.do("web1", *(upsert(f"p/{n}") for n in range(5)))
    hosts.follow("web2")
    for each in (tmp_path / "web2").iterdir():
        each.unlink()
    hosts.do("web1", upsert("p/0", lastmod="2020-01-01"))

    hosts.follow("web2")

    assert hosts.files("web1") == hosts.files("web2")


def test_a_bucket_follows_a_directory(
    store: redis.Redis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, storage: bucket.Server
) -> None:
    hosts = Hosts(store, tmp_path, monkeypatch, (storage.target(name="bucket"),), feed=True)
    hosts.do("web1", *(upsert(f"p/{n}", lastmod="2020-01-01") for n in range(5)))
    hosts.follow("bucket", "web2")
    storage.asked.clear()

    hosts.do("web2", delete("p/0"), delete("p/1"), upsert("p/4", lastmod="2020-01-02"))
    hosts.follow("bucket", "web1")

    found = {name: content for name, content in storage.files().items() if name not in PRIVATE}
    assert found == hosts.files("web1") == hosts.files("web2")
    names = [name for kind, name in storage.changes() if name[0] != "."]
    assert names.index("pages-3.xml") < names.index("sitemap.xml") < names.index("pages-1.xml")
    assert ("remove", "pages-1.xml") in storage.changes()


def diagnosis(hosts: Hosts) -> DoctorFinding:
    """What `sitemapd doctor` says of the targets."""
    rig = hosts.rig
    (check,) = (each for each in CHECKS if each.name == "targets")
    return check.look(Case(rig.settings, rig.name, rig.site, rig.client, ""))


def test_a_follower_that_fails_says_so_and_makes_up_for_it(
    store: redis.Redis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, storage: bucket.Server
) -> None:
    hosts = Hosts(store, tmp_path, monkeypatch, (storage.target(name="bucket"),))
    hosts.do("web1", upsert("a"))
    hosts.follow("bucket")
    assert hosts.records()["bucket"].failing_ms == 0
    hosts.do("web1", upsert("a", lastmod="2020-01-01"))
    storage.refuse = lambda method, _name: 403 if method == "PUT" else 0

    with pytest.raises(PublishError, match="403"):
        hosts.follow("bucket")

    record = hosts.records()["bucket"]
    assert record.failing_ms
    assert record.behind_ms
    assert "403" in record.reason
    assert "bucket" in (said := diagnosis(hosts)).detail
    assert (said.status, "403" in said.detail) == ("fail", True)
    assert bucket.KEYS["secret_access_key"] not in record.reason
    storage.refuse = lambda _method, _name: 0
    hosts.follow("bucket")
    assert hosts.records()["bucket"][2:] == (0, 0, "")
    assert diagnosis(hosts) == ok("3 targets, none behind for 60 s")
    assert storage.files()["pages-1.xml"] == hosts.files("web1")["pages-1.xml"]


def test_a_site_that_gets_a_second_target_has_it_filled(
    store: redis.Redis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = Rig(store, tmp_path / "web1", shard_urls=2, robots="create")
    alone.do(*(upsert(f"p/{n}") for n in range(5)))
    hosts = Hosts(store, tmp_path, monkeypatch)

    hosts.follow("web2", "web1")
    assert hosts.files("web1") == hosts.files("web2")
    # With one target again, publishes are not recorded: both are compared once more after that.
    alone.do(upsert("p/0", lastmod="2020-01-01"))
    hosts.do("web1", upsert("p/4", lastmod="2020-01-01"))
    hosts.follow("web2")

    assert hosts.files("web1") == hosts.files("web2")


def test_a_changed_form_reaches_every_target(
    store: redis.Redis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hosts = Hosts(store, tmp_path, monkeypatch)
    hosts.do("web1", *(upsert(f"p/{n}") for n in range(5)))
    hosts.follow("web2")

    changed = Hosts(store, tmp_path, monkeypatch, form="xml.gz", retire_hours=0)
    changed.do("web1", upsert("p/9"))
    changed.rig.audit().rebuild()
    changed.follow("web2")
    changed.follower("web2").target.forget()
    changed.follow("web2")

    assert "pages-1.xml.gz" in changed.files("web2")
    assert changed.files("web1") == changed.files("web2")
