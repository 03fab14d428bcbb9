"""Every kind of target keeps the same promises: order, crashes, refusals, ownership, fencing."""

from __future__ import annotations

import gzip
import math
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import pytest
import redis
from lxml import etree

from shared.config.sites.targets import NO_DIRECTORY
from shared.errors import ForeignStateError, OvertakenError
from tests.integration.faults import CutError
from tests.integration.publishing import bucket
from tests.integration.rig import BASE, Rig
from worker.publishing.targets import ownership
from worker.publishing.targets.registry import open_own
from worker.publishing.targets.target import Target

_LOC = re.compile(rb"<loc>([^<]+)</loc>")


class Place(Protocol):
    """A target as others see it."""

    options: dict[str, Any]

    def files(self) -> dict[str, bytes]: ...
    def put(self, name: str, content: bytes) -> None: ...
    def changes(self) -> list[tuple[str, str]]: ...


class Directory:
    _seen: list[tuple[str, str]] | None = None

    def __init__(self, path: Path) -> None:
        self._path = path
        self.options: dict[str, Any] = {}
        Directory._seen = []

    def files(self) -> dict[str, bytes]:
        found = self._path.iterdir() if self._path.is_dir() else ()
        return {each.name: each.read_bytes() for each in found}

    def put(self, name: str, content: bytes) -> None:
        (self._path / name).write_bytes(content)

    def changes(self) -> list[tuple[str, str]]:
        return list(Directory._seen or ())

    @classmethod
    def audit(cls, event: str, given: tuple[Any, ...]) -> None:
        if cls._seen is not None and event in {"os.rename", "os.remove"}:
            name = os.path.basename(str(given[1] if event == "os.rename" else given[0]))
            cls._seen.append(("write" if event == "os.rename" else "remove", name))


sys.addaudithook(Directory.audit)


class Bucket:
    def __init__(self, server: bucket.Server) -> None:
        self.server, self.files, self.changes = server, server.files, server.changes
        self.put = server.put
        self.options: dict[str, Any] = {"web_root": NO_DIRECTORY, "targets": (server.target(),)}


@pytest.fixture(scope="module")
def server() -> Iterator[bucket.Server]:
    with bucket.serving() as found:
        yield found


@pytest.fixture
def storage(server: bucket.Server) -> Iterator[Bucket]:
    """The bucket of a test, empty before and after."""
    server.asked.clear()
    yield Bucket(server)
    server.refuse, server.slow_s = (lambda _method, _name: 0), 0.0
    server.empty()


@pytest.fixture(params=["directory", "bucket"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    if request.param == "directory":
        yield Directory(tmp_path / "public")
        Directory._seen = None
        return
    yield request.getfixturevalue("storage")


@pytest.fixture
def rig(store: redis.Redis, place: Place, tmp_path: Path) -> Rig:
    return Rig(store, tmp_path / "public", shard_urls=2, robots="create", **place.options)


def upsert(loc: str, **members: Any) -> dict[str, Any]:
    return {"type": "upsert", "loc": loc, **members}


def delete(loc: str) -> dict[str, Any]:
    return {"type": "delete", "loc": loc}


def hold(files: dict[str, bytes]) -> None:
    """Hold what a reader may rely on: whole files, and indexes that name no missing one."""
    for name, content in files.items():
        if name.endswith((".xml", ".xml.gz")):
            tree = etree.fromstring(gzip.decompress(content) if name.endswith(".gz") else content)
            if tree.tag.endswith("sitemapindex"):
                named = {loc.text.removeprefix(BASE) for loc in tree.iter("{*}loc")}
                assert named <= files.keys(), f"{name} names a file that is not there"


def locs(files: dict[str, bytes]) -> set[str]:
    shards = (content for name, content in files.items() if name.startswith("pages-"))
    return {loc.decode().removeprefix(BASE) for each in shards for loc in _LOC.findall(each)}


def sound(rig: Rig, place: Place, expected: set[str]) -> None:
    files = place.files()
    hold(files)
    assert locs(files) == expected
    assert not list(rig.audit().verify())


def test_what_is_sent_is_listed_and_what_is_deleted_leaves(rig: Rig, place: Place) -> None:
    rig.do(*(upsert(f"p/{n}") for n in range(5)))
    sound(rig, place, {f"p/{n}" for n in range(5)})

    rig.do(delete("p/2"), delete("p/3"), upsert("p/0", lastmod="2020-01-01"))

    sound(rig, place, {"p/0", "p/1", "p/4"})
    assert "pages-2.xml" not in place.files()


def test_one_event_writes_its_shard_and_its_index_and_nothing_else(rig: Rig, place: Place) -> None:
    rig.do(*(upsert(f"p/{n}") for n in range(5)))
    before = len(place.changes())

    rig.do(upsert("p/0", lastmod="2020-01-01"))

    written = [each for each in place.changes()[before:] if each[1] != ".sitemapd"]
    assert written == [("write", "pages-1.xml"), ("write", "sitemap.xml")]


def test_shards_come_before_the_index_then_robots_then_removals(rig: Rig, place: Place) -> None:
    rig.do(*(upsert(f"p/{n}") for n in range(4)))
    names = [name for kind, name in place.changes() if kind == "write" and name[0] != "."]
    assert names.index("pages-1.xml") < names.index("sitemap.xml") < names.index("robots.txt")
    before = len(place.changes())

    rig.do(delete("p/0"), delete("p/1"), upsert("p/4"))

    late = [each for each in place.changes()[before:] if each[1] != ".sitemapd"]
    assert late == [("write", "pages-3.xml"), ("write", "sitemap.xml"), ("remove", "pages-1.xml")]


class Cut:
    """A target that ends the process before or after its `steps`th operation that changes it."""

    changing = frozenset({"place", "remove", "mark", "sync"})

    def __init__(self, behind: Target, steps: float, *, after: bool) -> None:
        self._behind, self.left, self._after = behind, steps, after

    def __getattr__(self, name: str) -> Any:
        real = getattr(self._behind, name)
        if name not in self.changing:
            return real

        def call(*arguments: Any) -> Any:
            if self.left <= 0 and not self._after:
                raise CutError
            done = real(*arguments)
            if self.left <= 0:
                raise CutError
            self.left -= 1
            return done

        return call


@pytest.mark.parametrize("after", [False, True])
def test_a_pass_cut_off_at_any_step_is_made_up_for(
    rig: Rig, place: Place, monkeypatch: pytest.MonkeyPatch, after: bool
) -> None:
    rig.do(*(upsert(f"p/{n}") for n in range(6)))
    expected, step, cut = {f"p/{n}" for n in range(6)}, 0, True
    while cut:
        rounds = [upsert(f"q/{step}"), delete(f"p/{step}"), upsert("p/5", priority=step / 100)]
        rig.send(*rounds)
        expected = expected - {f"p/{step}"} | {f"q/{step}"}
        if step == 5:
            expected.add("p/5")
        cutting = Cut(open_own(rig.site), math.inf, after=after)
        with monkeypatch.context() as patched:
            patched.setattr(ownership, "open_own", lambda _site, it=cutting: it)
            pump = rig.pump()
            pump.apply_all()
            cutting.left, cut = step, False
            try:
                pump.publisher.publish()
            except CutError:
                cut = True
        hold(place.files())
        rig.client.delete(rig.keys.lease)  # that of a dead process runs out
        rig.settle()
        sound(rig, place, expected)
        step += 1
    assert step > 4


def test_a_writer_without_the_lease_overwrites_nothing_newer(rig: Rig, place: Place) -> None:
    rig.do(upsert("a"))
    stale = open_own(rig.site)
    old = stale.stage("pages-1.xml", [b"<old/>"])
    created = stale.stage("pages-2.xml", [b"<old/>"])
    rig.do(upsert("a", lastmod="2020-01-01"), upsert("b"), upsert("c"))
    before = place.files()

    for staged in (old, created):
        with pytest.raises(OvertakenError):
            stale.place(staged)
    stale.discard([old, created])

    assert place.files() == before
    sound(rig, place, {"a", "b", "c"})


def test_files_of_another_state_are_left_alone(rig: Rig, place: Place, store: redis.Redis) -> None:
    rig.do(upsert("a"))
    before = place.files()
    store.flushall()
    rig.send(upsert("b"))

    rig.pump().run()

    assert place.files() == before
    stopped = rig.state.quarantine.stopped()
    assert stopped is not None
    assert stopped.kind == "state"
    rig.audit().publisher.adopt()
    rig.settle()
    rig.audit().rebuild()
    sound(rig, place, {"b"})


def test_a_sitemap_of_unknown_origin_is_not_overwritten(rig: Rig, place: Place) -> None:
    Path(rig.root).mkdir(exist_ok=True)
    place.put("sitemap.xml", b"<urlset/>")
    rig.send(upsert("a"))

    pump = rig.pump()
    pump.apply_all()

    with pytest.raises(ForeignStateError):
        pump.publisher.publish()
    assert place.files()["sitemap.xml"] == b"<urlset/>"


def test_a_file_that_was_changed_by_hand_comes_back(rig: Rig, place: Place) -> None:
    rig.do(*(upsert(f"p/{n}") for n in range(3)))
    place.put("pages-1.xml", b"<urlset/>")
    assert [each.name for each in rig.audit().verify()] == ["pages-1.xml"]

    rig.audit().rebuild()

    sound(rig, place, {"p/0", "p/1", "p/2"})


def test_refused_writes_keep_the_old_files_and_are_made_up_for(
    store: redis.Redis, storage: Bucket, tmp_path: Path
) -> None:
    """A directory that refuses is in test_refusing_disks.py."""
    place, server = storage, storage.server
    rig = Rig(store, tmp_path / "none", shard_urls=2, **place.options)
    rig.do(upsert("a"))
    before = place.files()
    rig.send(upsert("a", lastmod="2020-01-01"), upsert("b"), upsert("c"))

    for status in (403, 503):
        server.refuse = lambda method, _name, it=status: it if method == "PUT" else 0
        rig.pump().run()
        assert place.files() == before
        assert rig.state.dirty()
    # The first shard is written, the index is not.
    server.refuse = lambda method, name: 503 * (method == "PUT" and name == "sitemap.xml")
    rig.pump().run()
    hold(place.files())
    server.refuse = lambda _method, _name: 0
    rig.settle()

    sound(rig, place, {"a", "b", "c"})


def test_a_slow_bucket_is_written_and_nobody_sees_a_torn_file(
    store: redis.Redis, storage: Bucket, tmp_path: Path
) -> None:
    place, server = storage, storage.server
    rig = Rig(store, tmp_path / "none", shard_urls=2, **place.options)
    server.slow_s = 0.1
    rig.do(*(upsert(f"p/{n}") for n in range(5)))
    server.slow_s = 0.0

    sound(rig, place, {f"p/{n}" for n in range(5)})


def test_objects_have_the_headers_that_a_web_server_would_send(
    store: redis.Redis, storage: Bucket, tmp_path: Path
) -> None:
    server = storage.server
    for form, name, kind, encoding in (
        ("xml", "pages-1.xml", "application/xml", None),
        ("xml.gz", "pages-1.xml.gz", "application/gzip", None),
        ("encoded", "pages-1.xml", "application/xml", "gzip"),
    ):
        store.flushall()
        server.empty()
        rig = Rig(store, tmp_path / "none", form=form, feed=True, **storage.options)
        rig.do(upsert("a"))

        found = server.get(name)
        assert found["ContentType"] == kind
        assert found.get("ContentEncoding") == encoding
        assert found["CacheControl"] == "max-age=0, must-revalidate"
        assert found["ETag"]
        content = found["Body"].read()
        assert (content[:2] == b"\x1f\x8b") == (form != "xml")
        assert server.get("atom.xml").get("ContentEncoding") is None
        assert not list(rig.audit().verify())
        rig.do(upsert("b"))
        rig.audit().rebuild()
        assert name in server.files()
