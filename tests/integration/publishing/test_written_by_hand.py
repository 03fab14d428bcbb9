"""What others write into Redis is checked like what senders say, and stops nothing (T35)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import redis

from shared.sitemap.shards import Shard
from shared.store.operations.dead_letters import DeadLetters
from shared.store.operations.queues import Queues
from tests.integration.logs import silence
from tests.integration.rig import BASE, Rig

GOOD = {"type": "upsert", "loc": "good"}


def _event(**members: Any) -> dict[str, Any]:
    return {"e": json.dumps({"v": 1, "type": "upsert", "loc": f"{BASE}x"} | members)}


ENTRIES: dict[str, dict[Any, Any]] = {
    "a section that leads out of the web root": _event(section="../../x"),
    "a section with a slash": _event(section="a/b"),
    "an absolute path": _event(section="/etc/x"),
    "the name of the index": _event(section="sitemap"),
    "a section with a null byte": _event(section="a\0b"),
    "a section with a line end": _event(section="a\n"),
    "an endless section": _event(section="a" * 10_000),
    "another site's URL": _event(loc="https://www.example.org/x"),
    "a URL with dots": _event(loc=f"{BASE}../x"),
    "a URL that is not canonical": _event(loc="https://WWW.example.com/x"),
    "a month that is none": _event(lastmod="2....-.", section="pages"),
    "markup in a date": _event(lastmod="<x>"),
    "a version before all": _event(version=-1),
    "a version after all": _event(version=1 << 70),
    "half a character": _event(id="\ud800"),
    "a type that is none": _event(type="x"),
    "no field e": {"x": "y"},
    "many fields": {f"{n:05}": "" for n in range(9_000)},
    "fields of dead letters": {"id": "", "error": "nothing", "tries": "x", "e": "x"},
    "bytes that are no text": {b"e": b"\xff\xfe{"},
    "names that are no text": {b"\xff": b"\xff"},
    "a trace that is none": _event(section="../x") | {"t": b"\xff\n"},
    "nothing": {"e": ""},
    "a number": {"e": "7"},
    "a deep nest": {"e": "[" * 100_000},
}


@pytest.fixture
def rig(store: redis.Redis, tmp_path: Path) -> Rig:
    return Rig(store, tmp_path / "a" / "b" / "public")


def _outside(rig: Rig) -> set[Path]:
    top = rig.root.parents[1]
    return {path for path in top.rglob("*") if path.is_file() and rig.root not in path.parents}


@pytest.mark.parametrize("entry", ENTRIES.values(), ids=ENTRIES)
def test_an_entry_that_nobody_accepted_is_a_dead_letter_at_once(
    rig: Rig, entry: dict[Any, Any]
) -> None:
    rig.send(GOOD)
    ident: Any = rig.client.xadd(rig.keys.inbox, entry)
    rig.send(GOOD | {"loc": "other"})
    assert Queues(rig.client, rig.name).find(ident.decode()) is not None

    with silence():
        rig.pump().run()

    assert rig.inbox.waiting() == 0
    assert set(rig.listed()) == {f"{BASE}good", f"{BASE}other"}
    assert not _outside(rig)
    (letter,) = DeadLetters(rig.client, rig.name).letters()
    assert (letter.event, letter.tries) == (ident.decode(), 1)
    assert letter.error.startswith("SchemaError: ")
    rig.check()


@pytest.mark.parametrize("entry", ENTRIES.values(), ids=ENTRIES)
def test_such_an_entry_may_be_tried_again_or_purged(rig: Rig, entry: dict[Any, Any]) -> None:
    rig.client.xadd(rig.keys.inbox, entry)
    with silence():
        rig.pump().run()
        dead = DeadLetters(rig.client, rig.name)
        again = dead.retry([letter.id for letter in dead.letters()])
        rig.pump().run()
    assert (len(again), rig.inbox.waiting(), len(dead)) == (1, 0, 1)

    rig.client.xadd(rig.keys.inbox, entry)
    rig.send(GOOD)

    assert Queues(rig.client, rig.name).purge()[1] == 2
    assert rig.inbox.waiting() == 0


def test_an_event_that_cannot_be_buried_stops_no_other(rig: Rig) -> None:
    rig.client.set(rig.keys.dead, "of another type")
    rig.client.xadd(rig.keys.inbox, {"x": "y"})
    rig.send(GOOD)

    with silence():
        rig.pump().run()

    assert set(rig.listed()) == {f"{BASE}good"}
    assert rig.inbox.waiting() == 1
    rig.client.delete(rig.keys.dead)
    rig.settle()
    assert len(DeadLetters(rig.client, rig.name)) == 1


def test_an_event_of_a_newer_version_waits_and_stops_no_other(rig: Rig) -> None:
    rig.client.xadd(rig.keys.inbox, {"e": json.dumps({"v": 99, "section": "../../x"})})
    rig.send(GOOD)

    with silence():
        rig.pump().run()

    assert set(rig.listed()) == {f"{BASE}good"}
    assert (rig.inbox.waiting(), len(DeadLetters(rig.client, rig.name))) == (1, 0)


@pytest.mark.parametrize(
    "member",
    ["../../x/1", "", "pages/0", "pages/-1", "pages/99999999", "pages/1x", "pages/1\n", b"\xff/1"],
)
def test_what_is_dirty_and_no_shard_is_forgotten(rig: Rig, member: bytes | str) -> None:
    rig.client.zadd(rig.keys.dirty, {member: 0})
    rig.send(GOOD)

    assert rig.state.dirty() == []
    with silence():
        rig.pump().run()

    assert set(rig.listed()) == {f"{BASE}good"}
    assert rig.client.zcard(rig.keys.dirty) == 0
    assert not _outside(rig)
    rig.check()


def test_a_section_that_no_file_can_be_named_after_is_never_read(rig: Rig) -> None:
    rig.do(GOOD)
    rig.client.hset(rig.keys.sections, mapping={"../../x": 9, "sitemap": 8, b"\xff": 7})  # type: ignore[dict-item]
    rig.client.hset(rig.keys.shards("pages"), "x", "")

    assert rig.state.sections() == ["pages"]
    assert list(rig.state.shards(["pages"])) == [Shard("pages", 1)]


DAMAGES = ("shards", "blocks", "files", "index", "pending", "allowed")


@pytest.mark.parametrize("what", DAMAGES)
@pytest.mark.parametrize("value", [b"", b"x", b"\1" * 9, b"1 2"])
def test_a_damaged_record_holds_back_its_own_file_only(
    store: redis.Redis, tmp_path: Path, what: str, value: bytes
) -> None:
    rig = Rig(store, tmp_path, sections={"seen": {}})
    rig.do(GOOD, {"type": "upsert", "loc": "s", "section": "seen"})
    rig.send(GOOD | {"loc": "late"}, {"type": "upsert", "loc": "t", "section": "seen"})
    rig.pump().apply_all()
    keys, shard = rig.keys, Shard("seen", 1)
    patches: Any = store.hkeys(keys.pending(shard))
    key, field = {
        "shards": (keys.shards("seen"), b"1"), "blocks": (keys.blocks(shard), b"0"),
        "files": (keys.files("seen"), b"1"), "index": (keys.index(0), b"1"),
        "pending": (keys.pending(shard), patches[0]), "allowed": (keys.allowed, b"moved seen/1"),
    }[what]  # fmt: skip
    store.hset(key, field, value)

    with silence():
        rig.pump().run()

    assert f"{BASE}late" in rig.listed()
    whole, held = rig.state.quarantine.read()
    assert whole is None
    # An empty record of a file stands for none, and a line of an index is written anew.
    if what != "index" and (what, value) != ("files", b""):
        assert list(held) == [shard]
        assert "damaged" in held[shard].reason
