"""Workers: what they say of themselves, and that they do what is wanted of them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import redis
from typer.testing import CliRunner, Result

from deploy.cli.program import app
from shared.store.operations.worker_registry import (
    HEARTBEAT,
    HEARTBEAT_S,
    KEPT_S,
    QUIET_S,
    BusyThread,
    WorkerRegistry,
)
from shared.task_names import QUEUE, WAKE
from tests.conftest import ROOT
from tests.integration.conftest import RedisServer, wait_until
from tests.integration.logs import silence
from tests.integration.rig import BASE, Rig, check_keys
from worker.celery_app import create_worker_app
from worker.ingest.inbox_consumer import NOBODY
from worker.runtime import Runtime

CONFIG = """
redis_url = "{url}"
[sites.demo]
base_url = "{base}"
web_root = "public"
tokens = ["0123456789abcdef"]
publish_interval = 0
"""
WANTED = "{_sitemapd}:wanted:"

Make = Callable[..., Runtime]


@pytest.fixture
def rig(store: redis.Redis, tmp_path: Path) -> Rig:
    return Rig(store, tmp_path / "public")


@pytest.fixture
def home(redis_server: RedisServer, tmp_path: Path) -> Path:
    text = CONFIG.format(url=redis_server.url, base=BASE)
    (tmp_path / "sitemapd.toml").write_text(text)
    return tmp_path


@pytest.fixture
def make(rig: Rig, redis_server: RedisServer) -> Iterator[Make]:
    """Makes plants, and sees that none outlives the test."""
    made: list[Runtime] = []
    settings = rig.settings.model_copy(update={"redis_url": redis_server.url})

    def plant(name: str, **options: Any) -> Runtime:
        made.append(Runtime(settings, name, **options))
        return made[-1]

    before = set(threading.enumerate())
    yield plant
    for each in made:
        each.stop()
    for thread in set(threading.enumerate()) - before:
        if thread.name in {"beat", "sweep", "reconcile"}:
            thread.join(20)
            assert not thread.is_alive()


@pytest.fixture
def workers(store: redis.Redis) -> WorkerRegistry:
    return WorkerRegistry(store)


def page(name: object, **members: Any) -> dict[str, Any]:
    return {"type": "upsert", "loc": f"{BASE}{name}"} | members


def states(workers: WorkerRegistry) -> dict[str, str]:
    return {
        each.name: each.beat.state if each.beat else "alive" if each.alive else "gone"
        for each in workers.list()
    }


def run(home: Path, *arguments: str) -> Result:
    return CliRunner().invoke(app, ["workers", *arguments, "--home", str(home)])


def test_a_worker_says_how_it_is_doing(rig: Rig, make: Make, workers: WorkerRegistry) -> None:
    rig.send(*(page(n) for n in range(3)))
    before = time.time()
    plant = make("w1")
    plant.sweep()

    plant._heart.beat()
    plant._heart.beat()

    (worker,) = workers.list()
    beat = worker.beat
    assert beat is not None
    assert (worker.name, worker.alive, worker.wanted) == ("w1", True, "work")
    assert worker.seen <= HEARTBEAT_S
    assert (beat.version, beat.pid, beat.sites) == (version("sitemapd"), os.getpid(), ("demo",))
    assert (beat.state, beat.events, beat.files) == ("working", 3, 2)
    assert before - 1 <= beat.started <= time.time()
    assert beat.memory is None or 2**20 < beat.memory < 2**40
    assert beat.clock_offset is not None
    assert abs(beat.clock_offset) < 5
    check_keys(rig.client)


def test_a_thread_at_work_is_shown_with_its_site_and_since_when(
    rig: Rig, make: Make, workers: WorkerRegistry
) -> None:
    held, go_on = threading.Event(), threading.Event()

    def hold(_site: str) -> None:
        held.set()
        assert go_on.wait(60)

    plant = make("w1", on_resync=hold)
    rig.send({"type": "resync"})
    thread = threading.Thread(target=plant.wake, args=["demo"])
    thread.start()
    try:
        assert held.wait(60)
        plant._heart.beat()
        (busy,) = busy_of(workers)
        assert busy.site == "demo"
        assert 0 <= time.time() - busy.since < 120
    finally:
        go_on.set()
        thread.join()

    plant._heart.beat()
    assert busy_of(workers) == ()


def busy_of(workers: WorkerRegistry) -> tuple[BusyThread, ...]:
    (worker,) = workers.list()
    assert worker.beat is not None
    return worker.beat.busy


def test_a_worker_of_an_older_version_is_listed_and_cannot_be_told_anything(
    rig: Rig, home: Path, workers: WorkerRegistry
) -> None:
    """RELIABILITY F21."""
    rig.inbox.read("cli-7", 1)
    assert workers.list() == []
    rig.client.set(f"{HEARTBEAT}old", "1", ex=10)
    rig.client.zadd("{_sitemapd}:workers", {"old": time.time()})

    assert states(workers) == {"old": "alive"}
    done = run(home, "quiet", "old")

    assert done.exit_code == 1
    assert "takes no commands" in str(done.exception)
    assert not rig.client.exists(WANTED + "old")
    assert "older" in run(home).stdout


@pytest.mark.parametrize("said", [b"1", b"{}", b"[]", b"\xff", b'{"version": 7}', b""])
def test_whatever_stands_in_a_heartbeat_the_worker_lives(
    store: redis.Redis, workers: WorkerRegistry, make: Make, said: bytes
) -> None:
    make("w1")._heart.beat()
    store.set(f"{HEARTBEAT}w1", said, ex=10)

    (worker,) = workers.list()
    assert (worker.alive, worker.beat) == (True, None)


def test_a_heartbeat_of_a_newer_version_is_read_as_far_as_it_is_known(
    store: redis.Redis, workers: WorkerRegistry, make: Make
) -> None:
    make("w1")._heart.beat()
    stored: Any = store.get(f"{HEARTBEAT}w1")
    store.set(f"{HEARTBEAT}w1", json.dumps(json.loads(stored) | {"later": [1]}), ex=10)

    assert states(workers) == {"w1": "working"}


def test_who_is_gone_is_listed_for_a_day(
    store: redis.Redis, workers: WorkerRegistry, make: Make
) -> None:
    make("gone")._heart.beat()
    make("w1")._heart.beat()
    store.delete(f"{HEARTBEAT}gone")
    assert states(workers) == {"gone": "gone", "w1": "working"}

    store.zadd("{_sitemapd}:workers", {"gone": time.time() - KEPT_S - 1})
    make("w1")._heart.beat()

    assert states(workers) == {"w1": "working"}


def test_a_quiet_worker_leaves_all_to_the_others_until_it_is_to_work_again(
    rig: Rig, make: Make, workers: WorkerRegistry
) -> None:
    first, other = make("w1"), make("w2")
    first._heart.beat()
    workers.want("w1", "quiet")
    assert 0 < rig.client.ttl(WANTED + "w1") <= QUIET_S  # type: ignore[operator]
    first._heart.beat()
    assert states(workers) == {"w1": "quiet"}
    rig.send(page("a"))

    first.wake("demo")
    first.sweep()
    first.upkeep.tidy()
    first.upkeep.refresh()
    assert rig.inbox.waiting() == 1
    other.sweep()
    assert set(rig.listed()) == {BASE + "a"}
    assert (other._sites.done.events, first._sites.done.events) == (1, 0)

    workers.want("w1", "work")
    first._heart.beat()
    assert states(workers) == {"w1": "working"}
    rig.send(page("b"))
    first.wake("demo")
    assert set(rig.listed()) == {BASE + "a", BASE + "b"}
    assert first._sites.done.events == 1


def test_what_a_quiet_worker_holds_goes_to_the_others(
    rig: Rig, make: Make, workers: WorkerRegistry
) -> None:
    """A worker that lives loses nothing to others: it has to give it back (P8)."""
    rig.send(page("a"), page("b"))
    rig.inbox.read("w1", 10)
    workers.want("w1", "quiet")
    quiet, other = make("w1"), make("w2")
    quiet._heart.beat()
    other._heart.beat()
    other.sweep()
    assert rig.inbox.holders() == ["w1"]

    quiet.sweep()
    assert rig.inbox.holders() == [NOBODY]
    other.sweep()

    assert set(rig.listed()) == {BASE + "a", BASE + "b"}
    assert rig.quiet()
    rig.check()


def test_quiet_survives_a_restart(rig: Rig, make: Make, workers: WorkerRegistry) -> None:
    workers.want("w1", "quiet")
    rig.send(page("a"))
    restarted = make("w1")

    restarted.wake("demo")
    restarted.sweep()

    assert rig.inbox.waiting() == 1, "before its first heartbeat"


def test_the_events_of_a_quiet_worker_that_dies_are_taken_over(
    rig: Rig, make: Make, workers: WorkerRegistry
) -> None:
    rig.send(page("a"))
    rig.inbox.read("w1", 10)
    workers.want("w1", "quiet")

    make("w2").sweep()

    assert set(rig.listed()) == {BASE + "a"}


def test_a_command_does_the_work_itself_while_all_workers_are_quiet(
    rig: Rig, make: Make, workers: WorkerRegistry, home: Path
) -> None:
    rig.send(page("held"))
    rig.inbox.read("w1", 10)
    workers.want("w1", "quiet")
    quiet = make("w1")
    quiet._heart.beat()
    quiet._heart.beat()
    quiet.sweep()
    (home / "pages.txt").write_text(f"{BASE}a\n{BASE}b\n")

    with silence():
        done = CliRunner().invoke(
            app, ["import", "--from", f"sitemap:{home}/pages.txt", "--home", str(home)]
        )

    assert done.exit_code == 0, done.output
    assert set(rig.listed()) == {BASE + "held", BASE + "a", BASE + "b"}


def test_nobody_can_be_told_anything_who_is_not_there(
    home: Path, make: Make, store: redis.Redis
) -> None:
    make("w1")._heart.beat()
    unknown = run(home, "stop", "w7")
    assert (unknown.exit_code, "there are: w1" in str(unknown.exception)) == (1, True)
    store.delete(f"{HEARTBEAT}w1")

    gone = run(home, "stop", "w1")

    assert (gone.exit_code, "gone already" in str(gone.exception)) == (1, True)
    assert not store.keys(WANTED + "*")


class Process:
    """A worker as it is in production, under Celery."""

    def __init__(self, home: Path, name: str) -> None:
        self.log = home / f"{name}.log"
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "worker.main", "--config", home / "sitemapd.toml"],
                cwd=ROOT, stdout=log, stderr=log, env={**os.environ, "SITEMAPD_CONSUMER": name},
            )  # fmt: skip

    @property
    def status(self) -> int | None:
        return self._process.poll()

    def end(self) -> None:
        if self.status is None:
            self._process.send_signal(signal.SIGTERM)
            self._process.wait(30)


@pytest.fixture
def started(home: Path) -> Iterator[Callable[[str], Process]]:
    running: list[Process] = []

    def start(name: str) -> Process:
        running.append(Process(home, name))
        return running[-1]

    yield start
    for process in running:
        process.end()


def test_a_real_worker_takes_no_message_while_it_is_quiet_and_stops_when_it_is_told(
    rig: Rig,
    home: Path,
    workers: WorkerRegistry,
    started: Callable[[str], Process],
    redis_server: RedisServer,
) -> None:
    broker = create_worker_app(rig.settings.model_copy(update={"redis_url": redis_server.url}))

    def messages() -> int:
        return int(rig.client.llen(QUEUE))  # type: ignore[arg-type]

    def left_alone() -> bool:
        """Whether a message stays where it is put for as long as the worker beats again."""
        if not messages():
            broker.send_task(WAKE, ["demo"], queue=QUEUE)
        beats = rig.client.get(f"{HEARTBEAT}w1")
        wait_until(lambda: rig.client.get(f"{HEARTBEAT}w1") != beats, "the next heartbeat")
        return messages() > 0

    process = started("w1")
    wait_until(lambda: states(workers).get("w1") == "working", "it starts")
    assert run(home, "quiet", "w1").exit_code == 0
    wait_until(left_alone, "a message is left alone")
    assert run(home, "resume", "w1").exit_code == 0
    wait_until(lambda: not messages(), "the message is taken")
    rig.send(page("a"))
    wait_until(rig.quiet, "it works again")
    assert set(rig.listed()) == {BASE + "a"}
    workers.want("w1", "quiet")
    wait_until(lambda: states(workers) == {"w1": "quiet"}, "it is quiet again")

    done = run(home, "stop", "w1", "--wait", "60")

    assert done.exit_code == 0, done.output
    wait_until(lambda: process.status is not None, "it ends")
    assert process.status == 0
    assert states(workers) == {"w1": "gone"}, "nobody has to wait for its heartbeat to fade"
    assert workers.wanted("w1") == "quiet", "a restart does not change that"
    broker.close()
