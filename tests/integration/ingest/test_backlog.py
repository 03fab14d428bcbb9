"""A backlog of full batches, each decided while Redis applies the one before."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
import redis

from shared.errors import StoreDownError
from shared.store.client import RunningScript
from tests.integration.rig import BASE, Rig
from worker.ingest import inbox_consumer
from worker.ingest.inbox_consumer import InboxConsumer

SMALL = 20


@pytest.fixture
def waiting(store: redis.Redis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Rig:
    """A site that has just published, with hundreds of events in its inbox: all about some pages
    again and again, or about pages of their own.
    """
    monkeypatch.setattr(inbox_consumer, "BATCH", SMALL)
    rig = Rig(store, tmp_path / "public", publish_interval=0.2)
    history = random.Random(5)
    for at in range(30):
        rig.send(*(_event(history, at, n) for n in range(SMALL)))
    return rig


def _event(history: random.Random, at: int, n: int) -> dict[str, Any]:
    page = {"loc": f"same/{history.randrange(9)}"} if at % 3 else {"loc": f"new/{at}/{n}"}
    version = {"version": 1_700_000_000_000 + at * SMALL + n}
    if at % 7 == 6 and n % 2:
        return {"type": "delete", **page, **version}
    if at % 5 == 4:
        page |= {"group": f"g{history.randrange(3)}", "lang": history.choice(("de", "en", "fr"))}
    return {"type": "upsert", "id": page["loc"], **page, **version}


def just_published(rig: Rig) -> InboxConsumer:
    pump = rig.pump()
    pump._publish_at = float("inf")
    return pump


def test_a_backlog_ends_as_its_events_one_batch_after_another(
    waiting: Rig, store: redis.Redis, tmp_path: Path
) -> None:
    sent = [fields for _, fields in store.xrange(waiting.keys.inbox)]
    alone = Rig(store, tmp_path / "alone", name="alone")
    for fields in sent:
        store.xadd(alone.keys.inbox, fields)
    alone.pump().apply_all()
    alone.settle()

    pump = just_published(waiting)
    pump._work_on(pump.inbox.read("w1", SMALL), float("inf"))
    waiting.settle()

    assert pump.events == len(sent)
    assert waiting.listed() == alone.listed()
    waiting.check_consistency()


def test_a_worker_that_dies_ahead_of_its_batches_loses_none_of_them(
    waiting: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    replies = iter(range(4))
    reply = RunningScript.reply

    def failing(running: RunningScript) -> Any:
        if next(replies, None) is None:
            running.abandon()
            raise StoreDownError("Redis does not answer")
        return reply(running)

    pump = just_published(waiting)
    first = pump.inbox.read("w1", SMALL)
    with monkeypatch.context() as patch:
        patch.setattr(RunningScript, "reply", failing)
        with pytest.raises(StoreDownError):
            pump._work_on(first, float("inf"))
    held = waiting.client.xpending(waiting.keys.inbox, "workers")["pending"]
    assert held > SMALL, "only what was applied is settled"

    waiting.settle()

    assert f"{BASE}new/27/0" in waiting.listed()
    assert not waiting.inbox.waiting()
    waiting.check_consistency()


def test_no_more_is_read_ahead_once_a_worker_is_to_stop(waiting: Rig) -> None:
    pump = just_published(waiting)
    first = pump.inbox.read("w1", SMALL)
    pump.stop()

    pump._work_on(first, float("inf"))

    assert pump.events == SMALL
