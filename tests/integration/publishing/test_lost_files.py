"""Files of another state are never overwritten; lost ones are put back before they are named."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
import redis

from shared.config.filenames import MARKER
from shared.errors import PublishError
from tests.integration.rig import BASE, Rig, restore_keys, stored_keys
from worker.publishing.targets.ownership import Ownership


@pytest.fixture
def rig(store: redis.Redis, tmp_path: Path) -> Rig:
    return Rig(store, tmp_path / "public", shard_urls=4, robots="create")


def upsert(loc: str, **members: Any) -> dict[str, Any]:
    return {"type": "upsert", "loc": loc, **members}


def test_a_wiped_store_never_overwrites_the_files(rig: Rig) -> None:
    """RELIABILITY F22."""
    rig.do(*(upsert(f"p/{n}") for n in range(5)))
    before = rig.files()
    rig.client.flushall()
    rig.send(upsert("other"))

    rig.pump().run()

    assert before == rig.files()
    assert rig.state.dirty()
    with pytest.raises(PublishError, match="--adopt"):
        rig.pump().publisher.publish()


def test_an_older_store_never_overwrites_the_files(rig: Rig) -> None:
    rig.do(upsert("a"))
    backup = stored_keys(rig.client)
    rig.do(upsert("b"))
    before = rig.files()
    restore_keys(rig.client, backup)
    rig.send(upsert("c"))

    rig.pump().run()

    assert before == rig.files()


def test_adopting_the_files_heals_it(rig: Rig) -> None:
    rig.do(*(upsert(f"p/{n}") for n in range(5)))
    rig.client.flushall()
    rig.send(upsert("other"))
    rig.pump().apply_all()

    audit = rig.audit()
    audit.publisher.adopt()
    audit.rebuild()
    rig.settle()

    assert set(rig.listed()) == {BASE + "other"}
    rig.check()


@pytest.mark.parametrize(
    "torn", [b"", b"[", b"\0\0\0\0", b"5", b"[1]", b'["a", "b"]', b'{"a": 1, "b": 2}', None]
)
def test_files_without_a_readable_marker_are_compared_with_the_state(
    rig: Rig, torn: bytes | None
) -> None:
    """A power cut may leave an empty file: it is renamed without a flush."""
    rig.do(*(upsert(f"p/{n}") for n in range(9)))
    (rig.root / "pages-2.xml").write_bytes(b"spoilt")
    if torn is None:
        (rig.root / MARKER).unlink()
    else:
        (rig.root / MARKER).write_bytes(torn)

    rig.do(upsert("p/0", lastmod="2020-01-01"))

    rig.check()
    assert len(rig.listed()) == 9
    assert json.loads((rig.root / MARKER).read_bytes())[1] > 0


def test_the_marker_is_one_file_that_counts_the_publishes(rig: Rig) -> None:
    """In place, and of one length: no publish needs a third name, nor leaves half of a marker."""
    rig.do(upsert("a"))
    pump, inode = rig.pump(), (rig.root / MARKER).stat().st_ino
    counted, sizes = [], set()
    for n in range(12):
        rig.send(upsert(f"b/{n}"))
        pump.run()
        content = (rig.root / MARKER).read_bytes()
        counted.append(json.loads(content)[1])
        sizes.add(len(content))

    assert counted == list(range(counted[0], counted[0] + 12))
    assert (rig.root / MARKER).stat().st_ino == inode
    assert len(sizes) == 1


def test_a_marker_of_an_earlier_version_is_taken(rig: Rig) -> None:
    rig.do(upsert("a"))
    ident, publishes = json.loads((rig.root / MARKER).read_bytes())
    (rig.root / MARKER).write_text(json.dumps([ident, publishes]))
    before = rig.files()["pages-1.xml"]

    rig.do(upsert("a", lastmod="2020-01-01"), upsert("z"))

    assert rig.files()["pages-1.xml"].mtime_ns == before.mtime_ns + 10**9, "written once"
    assert json.loads((rig.root / MARKER).read_bytes()) == [ident, publishes + 1]


def test_files_that_were_placed_and_not_recorded_are_not_taken_back(
    rig: Rig, store: redis.Redis
) -> None:
    """A power cut after the rename took the marker: readers have seen the newer file already."""
    rig.do(upsert("p/0", lastmod="2020-01-01"))
    rig.send(upsert("p/0", lastmod="2020-01-02"))
    rig.pump().apply_all()
    unrecorded = stored_keys(store)
    rig.settle()
    newer = rig.files()["pages-1.xml"]
    restore_keys(store, unrecorded)
    (rig.root / MARKER).unlink()

    ownership = Ownership(rig.state, rig.name, rig.site)
    ownership.open(rig.state.run("another"), lambda: None)

    assert newer == rig.files()["pages-1.xml"]
    rig.settle()
    assert newer.content == rig.files()["pages-1.xml"].content
    rig.check()


@pytest.mark.parametrize("how", ["emptied", "replaced", "replaced under a running worker"])
def test_an_index_never_names_files_that_a_deployment_took_away(rig: Rig, how: str) -> None:
    rig.do(*(upsert(f"p/{n}") for n in range(20)))
    pump = rig.pump()
    if how == "replaced under a running worker":
        rig.send(upsert("p/1", lastmod="2020-01-01"))
        pump.run()
    if how == "emptied":
        for path in rig.root.iterdir():
            path.unlink()
    else:
        os.rename(rig.root, rig.root.with_name("old"))
        rig.root.mkdir()

    rig.send(upsert("p/0", lastmod="2020-01-01"))
    pump.run()

    rig.settle()
    rig.check()
    assert len(rig.listed()) == 20
