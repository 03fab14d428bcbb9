"""The schedule runs twice, on two hosts: nothing is done twice at once, and either may die."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import redis
from celery import Celery

from shared import task_names
from shared.store.operations.worker_registry import WorkerRegistry
from tests.conftest import ROOT
from tests.integration.conftest import RedisServer, wait_until
from tests.integration.rig import BASE, Rig
from tests.integration.worker.test_workers import CONFIG
from tests.unit.worker.sources.cms import Asked, Ghost, Reply, served
from worker.celery_app import create_worker_app
from worker.schedule import MOST_WAITING

KEY = "0123456789abcdef01234567890a"
SOURCE = """
source = "ghost:{url}/"
source_key = "{key}"
reconcile_hours = 1
"""

Start = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture
def rig(store: redis.Redis, tmp_path: Path) -> Rig:
    return Rig(store, tmp_path / "public")


@pytest.fixture
def home(redis_server: RedisServer, tmp_path: Path) -> Path:
    text = CONFIG.format(url=redis_server.url, base=BASE)
    (tmp_path / "sitemapd.toml").write_text(text)
    return tmp_path


@pytest.fixture
def start(home: Path) -> Iterator[Start]:
    """Starts `run worker NAME`, or `run schedule`."""
    running = []

    def begin(name: str, *options: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "worker.main", "--config", f"{home}/sitemapd.toml"]
        with (home / f"{name}.log").open("ab") as log:
            running.append(subprocess.Popen(
                [*command, *options], cwd=ROOT, stdout=log, stderr=log,
                env={**os.environ, "SITEMAPD_CONSUMER": name},
            ))  # fmt: skip
        return running[-1]

    yield begin
    for process in running:
        if process.poll() is None:
            process.terminate()
        process.wait(60)


@pytest.fixture
def app(rig: Rig, redis_server: RedisServer) -> Iterator[Celery]:
    with create_worker_app(rig.settings.model_copy(update={"redis_url": redis_server.url})) as app:
        yield app


def taken(store: redis.Redis) -> list[tuple[int, str]]:
    """The messages of the queue, taken out: the process that sent each, and its task."""
    found = []
    while message := store.rpop(task_names.QUEUE):
        headers = json.loads(message)["headers"]  # type: ignore[arg-type]
        found.append(
            (int(headers["origin"].partition("@")[0].removeprefix("gen")), headers["task"])
        )
    return found


def test_the_other_schedule_goes_on_when_one_is_killed(store: redis.Redis, start: Start) -> None:
    schedules = [start(f"s{n}", "--schedule") for n in range(2)]
    sent: list[tuple[int, str]] = []

    def sends(process: subprocess.Popen[bytes], more: int) -> None:
        had = sent.count((process.pid, task_names.SWEEP))

        def enough() -> bool:
            sent.extend(taken(store))
            return sent.count((process.pid, task_names.SWEEP)) >= had + more

        wait_until(enough, "its sweeps are sent")

    for each in schedules:
        sends(each, 2)
    killed, other = schedules
    killed.kill()
    killed.wait()

    sends(other, 3)
    sends(start("s0", "--schedule"), 2)


def test_schedules_fill_no_broker_while_no_worker_takes_anything(
    store: redis.Redis, start: Start, app: Celery
) -> None:
    def asked() -> int:
        calls: Any = store.info("commandstats")
        return int(calls.get("cmdstat_llen", {"calls": 0})["calls"])

    for _ in range(MOST_WAITING):
        app.send_task(task_names.SWEEP, queue=task_names.QUEUE)
    before = asked()
    for n in range(2):
        start(f"s{n}", "--schedule")
    wait_until(lambda: asked() >= before + 16, "both have looked some times", 120)

    assert store.llen(task_names.QUEUE) == MOST_WAITING
    assert taken(store)
    wait_until(lambda: store.llen(task_names.QUEUE), "they send again")


def test_what_two_schedules_ask_of_two_workers_is_done_once_at_a_time(
    rig: Rig, home: Path, start: Start, app: Celery
) -> None:
    """Sweeps, tidying, news and a reconcile that is due by the clock, asked for forty times."""
    ghost, held, go_on = Ghost(KEY), threading.Semaphore(0), threading.Event()
    ghost.rows["posts"] = [{"id": name, "url": BASE + name} for name in "abcde"]
    at_once: list[int] = [0, 0]  # now, most
    lock, readings = threading.Lock(), []

    def slow(asked: Asked) -> Reply | None:
        if "/posts" in asked.path:
            with lock:
                readings.append(asked.path)
                at_once[0] += 1
                at_once[1] = max(at_once)
            held.release()
            go_on.wait(60)
            with lock:
                at_once[0] -= 1
        return None

    def said() -> str:
        return "".join((home / f"{name}.log").read_text() for name in ("w1", "w2"))

    ghost.instead = slow
    everything = (task_names.SWEEP, task_names.TIDY, task_names.REFRESH, task_names.RECONCILE)
    with served(ghost) as url, suppress(BrokenPipeError):
        config = home / "sitemapd.toml"
        config.write_text(config.read_text() + SOURCE.format(url=url, key=KEY))
        for name in ("w1", "w2"):
            start(name)
        for name in ("s1", "s2"):
            start(name, "--schedule")
        wait_until(lambda: len(working(rig.client)) == 2, "two workers work")
        assert held.acquire(timeout=60), "the source is read"
        for n in range(40):
            rig.send({"type": "upsert", "loc": f"{BASE}{n % 5}"})
            for task in everything:
                app.send_task(task)
        wait_until(rig.quiet, "all events are applied")
        wait_until(lambda: not rig.client.llen(task_names.QUEUE), "all messages are taken")
        go_on.set()
        listed = {BASE + name for name in "abcde01234"}
        wait_until(lambda: {*rig.listed()} == listed and rig.quiet(), "both are listed")
        wait_until(lambda: "reconciled" in said(), "the source was read to its end")

    assert (readings, at_once[1]) == (readings[:1], 1)
    assert said().count('"event": "reconciled"') == 1
    assert "Traceback" not in said()
    rig.check()


def working(store: redis.Redis) -> list[str]:
    return [each.name for each in WorkerRegistry(store).list() if each.beat]
