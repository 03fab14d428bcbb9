"""Calls of each Lua script, caught with the state that their callers have come to."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

import pytest
import redis

from shared.domain.page_record import bucket_of, digest_of, field_of
from shared.domain.translation_groups import GROUP
from shared.events.resync_scope import Scope
from shared.sitemap.change_list import LoggedChange
from shared.sitemap.shards import Shard
from shared.store.client import Scripts
from shared.store.keys import Keys
from shared.store.layouts.migration import Migration
from shared.store.operations.checks import CheckStore
from shared.store.operations.dead_letters import DeadLetters
from shared.store.operations.queues import Queues
from shared.store.pages import buckets
from shared.store.pages.amendments import Amendment, Amendments
from shared.store.pages.snapshots import Snapshots
from shared.store.publishing.change_log import ChangeLog
from shared.store.targets.target_state import TargetState
from tests.integration.rig import BASE
from worker.ingest.shared_groups import SharedGroups
from worker.publishing.upkeep.shard_compaction import drain_emptiest

SITE: dict[str, Any] = {
    "feed": True,
    "sections": {"news": {"news": True}, "seen": {"shard_urls": 10}},
    "notify": {"indexnow": {"key": "k" * 8}},
}


class Call(NamedTuple):
    """One call of a script as its caller made it."""

    name: str
    keys: list[str]
    args: tuple[Any, ...]


class Caught(BaseException):
    """The call that was waited for; nothing that runs in between takes it for its own."""


Image = Mapping[bytes, tuple[bytes, int]]


def image(client: redis.Redis) -> Image:
    names = sorted(client.keys("*"))
    pipe = client.pipeline(transaction=False)
    for name in names:
        pipe.dump(name)
        pipe.pttl(name)
    replies = pipe.execute()
    return {name: (replies[2 * n], replies[2 * n + 1]) for n, name in enumerate(names)}


def restore(client: redis.Redis, image: Image, only: Collection[bytes] | None = None) -> None:
    """Make the whole state, or the keys `only` of it, that of the image."""
    pipe = client.pipeline(transaction=False)
    if only is None:
        pipe.flushdb()
    for name in () if only is None else only:
        pipe.delete(name)
    for name in image.keys() if only is None else image.keys() & only:
        dump, ttl = image[name]
        pipe.restore(name, max(ttl, 0) and 600_000, dump)
    pipe.execute()


def content(client: redis.Redis, only: Collection[bytes] | None = None) -> dict[bytes, Any]:
    """What is in each key, or in those `only`: a large hash has no order, and its dump one by
    chance.
    """
    names = client.keys("*") if only is None else [*only]
    kinds, values = client.pipeline(transaction=False), client.pipeline(transaction=False)
    for name in names:
        kinds.type(name)
    for name, kind in zip(names, kinds.execute(), strict=True):
        if kind == b"hash":
            values.hgetall(name)
        else:
            values.dump(name)
    found = zip(names, values.execute(), strict=True)
    return {name: value for name, value in found if value is not None}


def changed(before: Mapping[bytes, Any], after: Mapping[bytes, Any]) -> set[bytes]:
    return {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}


@contextmanager
def _caught(name: str, skip: int = 0) -> Iterator[list[tuple[Call, Image]]]:
    """The call number `skip` of the script `name` made within, and the state just before it."""
    found: list[tuple[Call, Image]] = []
    plain, start, left = Scripts.__call__, Scripts.start, [skip]

    def look(self: Scripts, called: str, keys: list[str], args: tuple[Any, ...]) -> None:
        if called == name:
            if not left[0]:
                client = redis.Redis(connection_pool=self._connections._pool)
                found.append((Call(called, list(keys), args), image(client)))
                raise Caught
            left[0] -= 1

    def called(self: Scripts, name_: str, keys: list[str], *args: Any) -> Any:
        look(self, name_, keys, args)
        return plain(self, name_, keys, *args)

    def started(self: Scripts, others: Any, name_: str, keys: list[str], *args: Any) -> Any:
        look(self, name_, keys, args)
        return start(self, others, name_, keys, *args)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Scripts, "__call__", called)
        patch.setattr(Scripts, "start", started)
        with suppress(Caught):
            yield found
        assert found, f"{name} was not called"


def _site(rig: Any) -> None:
    """Pages of all kinds, published; some of them wait to be told of."""
    rig.do(
        *({"type": "upsert", "loc": f"p/{n}", "id": f"i{n}", "title": "t"} for n in range(6)),
        *({"type": "upsert", "loc": f"g/{c}", "group": "g", "lang": c} for c in ("de", "en")),
        {"type": "upsert", "loc": "s/1", "section": "seen"},
    )  # fmt: skip
    rig.do({"type": "delete", "loc": "p/5"})


def _more(rig: Any) -> None:
    video = {
        "thumbnail_loc": f"{BASE}t", "title": "t", "description": "d", "content_loc": f"{BASE}v",
        "expiration_date": "2999-01-01",
    }  # fmt: skip
    news = {
        "publication": {"name": "n", "language": "en"}, "title": "t",
        "publication_date": "2999-01-01T00:00:00Z",
    }  # fmt: skip
    rig.send(
        {"type": "upsert", "loc": "p/0", "lastmod": "2020-02-02"},
        {"type": "upsert", "loc": "p/4", "news": news},
        {"type": "upsert", "loc": "p/new", "id": "i1"},
        {"type": "delete", "id": "i2"},
        {"type": "upsert", "loc": "p/3", "section": "seen"},
        {"type": "upsert", "loc": "p/5"},
        {"type": "upsert", "loc": "g/fr", "group": "g", "lang": "fr", "videos": [video]},
        {"type": "delete", "loc": "g/de"},
        {"type": "resync", "section": "pages"},
        {"type": "delete", "loc": "s/1"},
    )


def _accept(rig: Any) -> None:
    rig.send({"type": "upsert", "loc": "a"})
    rig.inbox.accept([rig.parse({"type": "delete", "loc": BASE})], rate=5, delivery="e", digest="d")
    with _caught("inbox/accept") as rig.found:
        events = [rig.parse({"type": "upsert", "loc": f"{BASE}{n}"}) for n in range(3)]
        rig.inbox.accept(events, delivery="d", digest="d", most=99, rate=5, quiet=True, trace="t")


def _apply(rig: Any) -> None:
    _site(rig)
    _more(rig)
    with _caught("pages/apply") as rig.found:
        rig.pump().run()


def _apply_expiry(rig: Any) -> None:
    _site(rig)
    _more(rig)
    rig.settle()
    with _caught("pages/apply") as rig.found:
        pump = rig.pump()
        pump.expiry._clock = lambda: float(1 << 36)
        pump.expire()


def _apply_move(rig: Any) -> None:
    rig.do(*({"type": "upsert", "loc": f"s/{n}", "section": "seen"} for n in range(14)))
    rig.do(*({"type": "delete", "loc": f"s/{n}"} for n in range(1, 10)))
    with _caught("pages/apply") as rig.found:
        drain_emptiest(rig.pages, rig.state)


def _begin(rig: Any) -> None:
    _site(rig)
    _more(rig)
    rig.pump().apply_all()
    rig.client.delete(rig.keys.lease)
    with _caught("publishing/begin_publish") as rig.found:
        rig.pump().publisher.publish()


def _commit(rig: Any) -> None:
    _site(rig)
    _more(rig)
    pump = rig.pump()
    pump.apply_all()
    with _caught("publishing/commit_publish") as rig.found:
        pump.publisher.publish()


def _commit_lost(rig: Any) -> None:
    _commit(rig)
    ((call, before),) = rig.found
    lease = rig.keys.lease.encode()
    rig.found = [(call, {name: each for name, each in before.items() if name != lease})]


def _commit_held(rig: Any) -> None:
    rig.do(*({"type": "upsert", "loc": f"p/{n}"} for n in range(60)))
    rig.send(*({"type": "delete", "loc": f"p/{n}"} for n in range(59)))
    pump = rig.pump()
    pump.apply_all()
    with _caught("publishing/commit_publish") as rig.found:
        pump.publisher.publish()
    ((call, before),) = rig.found
    # And one page has changed again meanwhile.
    restore(rig.client, before)
    taking, pending = rig.keys.taking(Shard("pages", 1)), rig.keys.pending(Shard("pages", 1))
    patches: Any = rig.client.hgetall(taking)
    for field, patch in list(patches.items())[:2]:
        rig.client.hset(pending, field, patch)
    rig.found = [(call, image(rig.client))]


def _bury(rig: Any) -> None:
    _more(rig)
    (first, *_) = rig.inbox.read("w1", 3)
    with _caught("operations/dead_letter") as rig.found:
        rig.inbox.dead_letter(first.id, "why", 5)


def _purge(rig: Any) -> None:
    _more(rig)
    rig.inbox.read("w1", 3)
    with _caught("operations/purge") as rig.found:
        Queues(rig.client, rig.name).purge()


def _revive(rig: Any) -> None:
    _more(rig)
    for received in rig.inbox.read("w1", 3):
        rig.inbox.dead_letter(received.id, "why", 5)
    dead = DeadLetters(rig.client, rig.name)
    with _caught("operations/requeue_dead") as rig.found:
        dead.retry([letter.id for letter in dead.letters()])


def _forget(rig: Any) -> None:
    _site(rig)
    _more(rig)
    rig.settle()
    with _caught("pages/purge_tombstones") as rig.found:
        rig.pages.purge_tombstones(1 << 46)


def _release(rig: Any) -> None:
    _site(rig)
    with _caught("publishing/release_lease") as rig.found:
        rig.lease.release("mine", list(rig.state.shards(["pages", "seen"])))


def _release_own(rig: Any) -> None:
    rig.lease.take("mine")
    with _caught("publishing/release_lease") as rig.found:
        rig.lease.release("mine")


def _hold(rig: Any) -> None:
    rig.lease.take("mine")
    with _caught("publishing/extend_lease") as rig.found:
        rig.lease.extend("mine")


def _rest(rig: Any) -> None:
    _site(rig)
    rig.inbox.stay_awake()
    with _caught("inbox/mark_idle") as rig.found:
        rig.inbox.rest()


def _unlock(rig: Any) -> None:
    run = CheckStore(rig.client, rig.name).begin("me", "you")
    with _caught("lua/unlock") as rig.found:
        run.end()


def _answered(rig: Any) -> None:
    _more(rig)
    rig.settle()
    rig.client.zadd(rig.keys.resync, {"site": 5})
    with _caught("operations/close_resyncs") as rig.found:
        rig.resyncs.answered({Scope(): 5})


def _know(rig: Any) -> None:
    _site(rig)
    with _caught("pages/read_records") as rig.found:
        rig.pages.read([rig.parse({"type": "delete", "loc": f"{BASE}p/1", "id": "i1"})])


def _titles(rig: Any) -> None:
    _site(rig)
    digest = digest_of(f"{BASE}p/1")
    rig.client.hset(f"{rig.keys.prefix}titles:{bucket_of(digest):x}", field_of(digest), "One")
    with _caught("pages/read_titles") as rig.found:
        rig.pages.lookup.titles([f"{BASE}p/1"])


def _swap(rig: Any) -> None:
    _site(rig)
    found = image(rig.client)
    beside = f"{{{rig.name}}}~"
    for name, (dump, _) in found.items():
        staged = name.replace(Keys(rig.name).prefix.encode(), f"{beside}tok:".encode())
        if staged != name:
            rig.client.restore(staged, 0, dump)
    rig.client.set(f"{beside}restore", "tok")
    call = Call(
        "operations/swap_restored",
        [f"{beside}restore"],
        ("tok", rig.keys.prefix, f"{beside}tok:", 1),
    )
    rig.found = [(call, image(rig.client))]


def _amend(rig: Any) -> None:
    _site(rig)
    repair = Amendment()
    repair.change(rig.keys.counters, "urls", "9", "8")
    repair.scores.append((rig.keys.expiry, "p/1", 5))
    rig.client.hset(rig.keys.counters, "urls", 9)
    with _caught("pages/amend") as rig.found:
        Amendments(rig.client, rig.name).write(repair)


def _buckets(rig: Any) -> None:
    _site(rig)
    with _caught("pages/read_buckets") as rig.found, pytest.MonkeyPatch.context() as patch:
        patch.setattr(buckets, "FEW_KEYS", 0)
        next(Snapshots(rig.client, rig.name).pages())


def _change_log(rig: Any) -> None:
    _site(rig)
    log = ChangeLog(rig.client, rig.name, 2)
    log.append([LoggedChange("created", f"{BASE}p/{n}") for n in range(2)])
    with _caught("publishing/change_log") as rig.found:
        log.append([LoggedChange("updated", f"{BASE}p/1")])


def _settle_group(rig: Any) -> None:
    _site(rig)
    group = b"8 bytes!"
    key = GROUP + group.hex()
    rig.client.hset(rig.keys.cluster(group), "", "5")
    rig.client.zadd(rig.keys.expiry, {key: 1})
    groups = SharedGroups(rig.client, rig.name, rig.pages, {})
    with _caught("pages/settle_group") as rig.found:
        groups.tell([key], 1)


def _read_new(rig: Any) -> None:
    _site(rig)
    rig.send({"type": "upsert", "loc": "p/9"})
    with _caught("inbox/read_new") as rig.found:
        rig.inbox.read_new("w9", 5)


def _target(rig: Any) -> TargetState:
    """A site with two targets, of which the second one is behind."""
    _site(rig)
    assert rig.lease.take("mine")
    versions = ("pages/1 index:0", "first", "second")
    assert rig.lease.commit("mine", [], {}, versions=versions).publishes
    target = TargetState(rig.client, rig.name, "second", "me")
    assert target.take()
    target.mistrust(["pages/2"])
    return target


def _changes(rig: Any) -> None:
    target = _target(rig)
    with _caught("targets/read_changes") as rig.found:
        target.changes(1_000)


def _doubt(rig: Any) -> None:
    target = _target(rig)
    with _caught("targets/doubt_files") as rig.found:
        assert target.doubt(["pages/1", "index:0"])


def _complete(rig: Any) -> None:
    target = _target(rig)
    with _caught("targets/complete_target") as rig.found:
        assert target.complete(target.changes(1_000), ["pages/2"])


def _migration(rig: Any, script: str, skip: int = 0) -> None:
    rig.do(*({"type": "upsert", "loc": f"p/{n}"} for n in range(3)))
    Migration(rig.client, rig.name, "w1").back()
    with _caught(script, skip) as rig.found:
        Migration(rig.client, rig.name, "w1").run()


def _migration_begins(rig: Any) -> None:
    _migration(rig, "layouts/begin_migration")


def _migration_step(rig: Any) -> None:
    # The first step, of what belongs to engines, finds nothing; the sections come by their names.
    sections = sorted(rig.pages.sections.numbers())
    _migration(rig, "layouts/move_keys", 1 + 2 * sections.index("pages"))


def _migration_ends(rig: Any) -> None:
    _migration(rig, "layouts/end_migration")


SCENES: dict[str, tuple[Callable[[Any], None], ...]] = {
    "targets/read_changes": (_changes,), "targets/doubt_files": (_doubt,),
    "targets/complete_target": (_complete,),
    "inbox/accept": (_accept,), "inbox/mark_idle": (_rest,), "inbox/read_new": (_read_new,),
    "pages/amend": (_amend,), "pages/apply": (_apply, _apply_expiry, _apply_move),
    "pages/settle_group": (_settle_group,), "pages/purge_tombstones": (_forget,),
    "pages/read_buckets": (_buckets,),
    "pages/read_records": (_know,), "pages/read_titles": (_titles,),
    "publishing/begin_publish": (_begin,), "publishing/change_log": (_change_log,),
    "publishing/commit_publish": (_commit, _commit_lost, _commit_held),
    "publishing/extend_lease": (_hold,), "publishing/release_lease": (_release, _release_own),
    "operations/close_resyncs": (_answered,), "operations/dead_letter": (_bury,),
    "operations/purge": (_purge,), "operations/requeue_dead": (_revive,),
    "operations/swap_restored": (_swap,),
    "lua/unlock": (_unlock,),
    "layouts/begin_migration": (_migration_begins,), "layouts/end_migration": (_migration_ends,),
    "layouts/move_keys": (_migration_step,),
}  # fmt: skip
