"""A state is moved from one layout to the next and back, whole wherever it is interrupted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import redis

from shared.domain.page_record import owner_of
from shared.errors import LayoutError, StoreError
from shared.store.keys import EVERYWHERE
from shared.store.layouts import section_keys, shared_keys
from shared.store.layouts.migration import (
    Migration,
    MigrationBusyError,
    layouts,
    move_shared,
)
from shared.store.layouts.version import CURRENT, Layout
from tests.integration.rig import Rig, check_keys

SITE: dict[str, Any] = {"feed": True, "sections": {"blog": {}, "news": {"news": True}}}


class KilledError(Exception):
    """The process that migrates was killed after a step."""


@pytest.fixture
def rig(store: redis.Redis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Rig:
    """A site of several sections and shards, with patches that wait."""
    monkeypatch.setattr(section_keys, "_SHARDS", 2)
    rig = Rig(store, tmp_path, shard_urls=10, **SITE)
    rig.do(*({"type": "upsert", "loc": f"p/{n}"} for n in range(35)))
    rig.do(*({"type": "upsert", "loc": f"b/{n}", "section": "blog"} for n in range(12)))
    rig.do({"type": "delete", "loc": "p/3"})
    rig.send({"type": "upsert", "loc": "p/4", "lastmod": "2026-01-02"})
    rig.pump().apply_all()
    store.delete(rig.keys.lease)
    return rig


def image(store: redis.Redis) -> dict[bytes, Any]:
    """Every key and its value, without the fields that a migration itself sets."""
    found: dict[bytes, Any] = {}
    for key in store.keys("{demo}*"):
        found[key] = store.dump(key)
        if key.endswith(b":counters"):
            fields: dict[bytes, bytes] = store.hgetall(key)
            for name in (b"numbering", b"owners", b"back", b"form"):
                fields.pop(name, None)
            found[key] = fields
    return found


def killed_after(steps: int) -> Callable[[int], None]:
    left = [steps]

    def seen(_keys: int) -> None:
        left[0] -= 1
        if not left[0]:
            raise KilledError

    return seen


def dead(rig: Rig) -> None:
    """Its right to migrate runs out."""
    rig.client.delete(rig.keys.migrating)


def migration(rig: Rig, owner: str = "w1") -> Migration:
    return Migration(rig.client, rig.name, owner)


def test_a_migration_back_and_forth_changes_names_alone(rig: Rig) -> None:
    before = image(rig.client)

    moved = migration(rig).back()
    former = image(rig.client)

    assert layouts(rig.client, ["demo"])["demo"] == Layout(2, None, stays=True)
    assert b"{demo}:pages:shards" in former
    assert not rig.client.keys("{demo}:section:*")
    assert migration(rig).run() == moved > 8
    assert image(rig.client) == before
    assert layouts(rig.client, ["demo"])["demo"].current
    check_keys(rig.client)


@pytest.mark.parametrize("back", [False, True])
def test_a_migration_killed_after_any_step_goes_on_and_goes_back(rig: Rig, back: bool) -> None:
    before = image(rig.client)
    migration(rig).back()
    former = image(rig.client)
    step, interrupted = 0, True
    while interrupted:
        step += 1
        try:
            migration(rig).run(killed_after(step))
            interrupted = False
        except KilledError:
            dead(rig)
        layout = layouts(rig.client, ["demo"])["demo"]
        assert layout.current is not interrupted
        if back and interrupted:
            migration(rig).back()
            assert image(rig.client) == former
        elif interrupted and step % 2:  # killed again on the way
            with pytest.raises(KilledError):
                migration(rig).run(killed_after(1))
            dead(rig)
    assert step > 4
    assert image(rig.client) == before
    rig.settle()
    rig.check()


def test_nothing_is_applied_or_published_while_a_site_is_moved(rig: Rig) -> None:
    pump = rig.pump()
    migration(rig).back()
    with pytest.raises(KilledError):
        migration(rig).run(killed_after(3))
    before = image(rig.client)
    inbox = rig.keys.inbox.encode()

    for work in (pump.apply_all, rig.pump("w2").apply_all, lambda: rig.begin("token")):
        rig.send({"type": "upsert", "loc": "p/90"})
        with pytest.raises(StoreError, match=r"layout 2.*migrate|LAYOUT"):
            work()

    now = image(rig.client)
    assert {key for key in now if now[key] != before.get(key)} <= {
        inbox, *(key for key in now if b":stats" in key or b"pulse:" in key or b"hour:" in key),
        b"{demo}:awake", b"{demo}:rate", *(key for key in now if b"accepted:" in key),
    }  # fmt: skip
    dead(rig)
    migration(rig).run()
    rig.pump("w2").run()
    rig.settle()
    assert not rig.client.xlen(rig.keys.dead)
    assert "https://www.example.com/p/90" in rig.listed()
    rig.check()


def test_a_batch_decided_before_a_migration_is_decided_again(rig: Rig) -> None:
    event = rig.parse({"type": "upsert", "loc": "https://www.example.com/new"})
    read = rig.pages.read([event])
    migration(rig).back()

    assert not rig.pages.apply(read, read.state)
    with pytest.raises(LayoutError, match="moved back"):
        rig.pages.read([event])


def test_a_migration_waits_for_the_publisher_and_for_no_other_migration(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shared.store.layouts.migration.LEASE_MS", 20)
    rig.client.set(rig.keys.lease, "w2:token", px=60_000)
    with pytest.raises(MigrationBusyError, match="being published"):
        migration(rig).back()
    rig.client.delete(rig.keys.lease)
    migration(rig).back()
    with pytest.raises(KilledError):
        migration(rig, "w7").run(killed_after(1))

    with pytest.raises(MigrationBusyError, match="w7 is migrating demo"):
        migration(rig).run()
    rig.client.set(rig.keys.migrating, "w8:other")
    with pytest.raises(MigrationBusyError, match="w8"):
        migration(rig).back()


def test_a_migration_that_lost_its_right_ends(rig: Rig) -> None:
    with pytest.raises(MigrationBusyError, match="another process"):
        migration(rig).back(lambda _: dead(rig))

    migration(rig).back()
    migration(rig).run()
    rig.settle()
    rig.check()


def test_a_newer_layout_is_left_alone(rig: Rig) -> None:
    rig.client.hset(rig.keys.counters, "form", CURRENT + 1)
    rig.send({"type": "upsert", "loc": "p/91"})
    before = image(rig.client)

    for work in (migration(rig).run, migration(rig).back, rig.pump().apply_all):
        with pytest.raises(LayoutError, match="install the version that wrote it"):
            work()
    with pytest.raises(StoreError, match=f"layout {CURRENT + 1}"):
        rig.begin("token")

    now = image(rig.client)
    assert {key for key in now if now[key] != before[key]} == {rig.keys.inbox.encode()}
    assert rig.inbox.waiting() == 1


def test_a_site_without_state_needs_no_migration(store: redis.Redis) -> None:
    empty = Migration(store, "demo", "w1")

    assert empty.run() == empty.back() == 0
    assert not store.keys("{demo}*")


def test_claims_of_layout_2_are_found_under_their_owners(
    store: redis.Redis, tmp_path: Path
) -> None:
    rig = Rig(store, tmp_path)
    rig.client.hset(rig.keys.counters, "owners", "2")
    rig.do({"type": "upsert", "loc": "p/1", "id": "i1"}, {"type": "upsert", "loc": "p/2"})
    former = owner_of("native", "", "i1", "", former=True)
    assert store.hkeys(rig.keys.id(former)) == [former[2:]]

    rig.do({"type": "delete", "id": "i1"})

    assert set(rig.listed()) == {"https://www.example.com/p/2"}
    rig.check()


def test_a_site_with_claims_of_layout_3_is_not_moved_back(
    store: redis.Redis, tmp_path: Path
) -> None:
    rig = Rig(store, tmp_path)
    rig.do({"type": "upsert", "loc": "p/1", "id": "i1"})

    with pytest.raises(LayoutError, match="the ids of its pages"):
        migration(rig).back()

    rig.do({"type": "delete", "id": "i1"}, {"type": "upsert", "loc": "p/2"})
    rig.check()


def test_live_workers_of_the_version_before_are_named(rig: Rig) -> None:
    migration(rig).back()
    rig.client.zadd(f"{shared_keys.FORMER}workers", {"old1": 1, "old2": 2})
    rig.client.set(f"{shared_keys.FORMER}worker:old2", "{}")

    with pytest.raises(MigrationBusyError, match="still run: old2; stop them"):
        migration(rig).run()
    rig.client.delete(f"{shared_keys.FORMER}worker:old2")

    assert migration(rig).run() > 8


def test_the_audit_log_and_counts_of_both_layouts_become_one(store: redis.Redis) -> None:
    former, now = shared_keys.FORMER, EVERYWHERE
    for ident, prefix in (("1-1", former), ("3-1", now), ("2-1", former)):
        store.xadd(f"{prefix}audit", {"action": ident}, id=ident)
    store.hset(f"{former}counts", "x", 2)
    store.hset(f"{now}counts", "x", 3)

    move_shared(store, {"demo": Layout(CURRENT)})

    assert [ident for ident, _ in store.xrange(f"{now}audit")] == [b"1-1", b"2-1", b"3-1"]
    assert store.hgetall(f"{now}counts") == {b"x": b"5"}
    assert not store.keys(f"{former}*")

    move_shared(store, {"demo": Layout(2, None, stays=True), "other": Layout(CURRENT)})
    assert not store.keys(f"{former}*")
    move_shared(store, {"demo": Layout(2, None, stays=True)})

    assert store.xlen(f"{former}audit") == 3
    assert not store.keys(f"{now}*")
