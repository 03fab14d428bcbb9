"""A worker takes changed, new and removed sites without a restart, and loses no event of any."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from shared.config.settings import Settings
from shared.config.sites.site import Site
from shared.store.operations.worker_registry import WorkerRegistry
from tests.integration.conftest import RedisServer, Wait
from tests.integration.logs import silence
from tests.integration.rig import Rig
from worker.ingest.inbox_consumer import InboxConsumer
from worker.runtime import Runtime
from worker.sites import site_work


@pytest.fixture
def rigs(store: redis.Redis, tmp_path: Path) -> dict[str, Rig]:
    return {name: Rig(store, tmp_path / name, name=name) for name in ("one", "two")}


def with_sites(redis_server: RedisServer, **sites: Site) -> Settings:
    return Settings(redis_url=redis_server.url, sites=sites)


@pytest.fixture
def runtime(rigs: dict[str, Rig], redis_server: RedisServer) -> Iterator[Runtime]:
    """A worker with the site `one`."""
    runtime = Runtime(with_sites(redis_server, one=rigs["one"].site), "w1")
    with silence():
        runtime.start()
        yield runtime
        runtime.stop()
        for loop in runtime.loops:
            loop.join(10)
        runtime.end()


def listed(rig: Rig) -> int:
    """The number of pages in its files; it has none before the first publish."""
    return len(rig.listed()) if rig.root.exists() else 0


def page(number: int) -> dict[str, str]:
    return {"type": "upsert", "loc": f"p{number}"}


def test_a_new_site_is_worked_on(
    runtime: Runtime, rigs: dict[str, Rig], redis_server: RedisServer, until: Wait,
    store: redis.Redis,
) -> None:  # fmt: skip
    kept = runtime._sites.present["one"]
    rigs["two"].send(page(1))

    runtime.follow(with_sites(redis_server, one=rigs["one"].site, two=rigs["two"].site))

    until(lambda: listed(rigs["two"]) == 1, "the new site is published")
    assert runtime._sites.present["one"] is kept, "the other site notices nothing"
    runtime._heart.beat()
    assert WorkerRegistry(store).list()[0].works_on("two")


def test_a_changed_site_is_published_by_its_new_settings(
    runtime: Runtime, rigs: dict[str, Rig], redis_server: RedisServer, until: Wait,
    store: redis.Redis,
) -> None:  # fmt: skip
    rigs["one"].send(page(1))
    runtime.wake("one")
    changed = Rig(store, rigs["one"].root, name="one", sections={"blog": {}}, feed=True)

    runtime.follow(with_sites(redis_server, one=changed.site))

    changed.send({**page(2), "section": "blog"})
    runtime.wake("one")
    until((changed.root / "blog-1.xml").exists, "the section has its file")
    until((changed.root / "atom.xml").exists, "and there is a feed")


def test_a_batch_is_applied_by_one_configuration(
    runtime: Runtime, rigs: dict[str, Rig], redis_server: RedisServer, until: Wait,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """The new parts of a site wait for a batch in progress; none of them is lost or run twice."""
    begun, go_on, at_once = threading.Event(), threading.Event(), list[int]()
    process, running = InboxConsumer._process, list[object]()

    def slow(self: InboxConsumer, *arguments: object) -> None:
        running.append(self)
        at_once.append(len(running))
        begun.set()
        assert go_on.wait(60)
        process(self, *arguments)  # type: ignore[arg-type]
        running.remove(self)

    monkeypatch.setattr(InboxConsumer, "_process", slow)
    monkeypatch.setattr("worker.runtime.SETTLE_S", 0.05)
    rigs["one"].send(page(1))
    thread = threading.Thread(target=runtime.wake, args=("one",))
    thread.start()
    assert begun.wait(30)
    changed = rigs["one"].site.model_copy(update={"publish_interval": 0.5})

    runtime.follow(with_sites(redis_server, one=changed))
    rigs["one"].send(page(2))
    runtime.wake("one")
    assert len(running) == 1
    go_on.set()
    thread.join()

    until(lambda: listed(rigs["one"]) == 2, "both pages are published")
    assert set(at_once) == {1}
    assert runtime._sites.done.events >= 1


def test_a_removed_site_is_finished_and_then_left(
    runtime: Runtime, rigs: dict[str, Rig], redis_server: RedisServer, until: Wait,
    monkeypatch: pytest.MonkeyPatch, store: redis.Redis,
) -> None:  # fmt: skip
    monkeypatch.setattr(site_work, "LEAVE_S", 0.0)
    rigs["one"].send(*map(page, range(50)))

    runtime.follow(with_sites(redis_server, two=rigs["two"].site))

    until(lambda: listed(rigs["one"]) == 50, "what was accepted is published")
    until(lambda: not runtime._sites.leaving, "the site is left")
    rigs["one"].send(page(99))
    runtime.wake("one")
    assert rigs["one"].inbox.waiting() == 1
    runtime._heart.beat()
    assert not WorkerRegistry(store).list()[0].works_on("one")

    runtime.follow(with_sites(redis_server, **{name: rig.site for name, rig in rigs.items()}))
    until(lambda: listed(rigs["one"]) == 51, "its state was kept")


def test_a_site_that_cannot_be_finished_is_left_in_the_end(
    runtime: Runtime, rigs: dict[str, Rig], redis_server: RedisServer, until: Wait,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(site_work, "LEAVE_S", 0.0)
    monkeypatch.setattr(site_work, "LONGEST_S", 0.5)
    queues = runtime._sites.present["one"].consumer.queues
    queues.pause("events", "an admin")
    rigs["one"].send(page(1))

    runtime.follow(with_sites(redis_server, two=rigs["two"].site))

    until(lambda: not runtime._sites.leaving, "the site is left")
    assert rigs["one"].inbox.waiting() == 1


def test_what_cannot_be_built_changes_nothing(
    runtime: Runtime, rigs: dict[str, Rig], redis_server: RedisServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    before = dict(runtime._sites.present)

    def fail(*_: object) -> None:
        raise RuntimeError("cannot be built")

    monkeypatch.setattr(runtime._companions[-1], "prepare", fail)
    with pytest.raises(RuntimeError):
        runtime.follow(with_sites(redis_server, two=rigs["two"].site))

    assert runtime._sites.present == before
    assert not runtime._sites.leaving


def test_a_failure_of_a_removed_site_is_shown_no_longer(
    runtime: Runtime, rigs: dict[str, Rig], redis_server: RedisServer, until: Wait,
    monkeypatch: pytest.MonkeyPatch, store: redis.Redis,
) -> None:  # fmt: skip
    monkeypatch.setattr(site_work, "LEAVE_S", 0.0)
    monkeypatch.setattr(site_work, "LONGEST_S", 0.0)
    store.set(rigs["one"].keys.tombs, "of the wrong type", ex=600)
    runtime.upkeep.tidy()
    shown = runtime.watchdog.look
    assert [each.site for each in shown().troubles] == ["one"]

    runtime.follow(with_sites(redis_server, two=rigs["two"].site))

    until(lambda: not shown().troubles, "it is forgotten with its site")
    assert time.time() - shown().succeeded["heartbeat"] < 60
