"""The command line of Celery beside `sitemapd run`: pools, inspect, status, report."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
import redis

from shared.store.operations.worker_registry import WorkerRegistry
from shared.task_names import NOTIFY_QUEUE, QUEUE, RECONCILE_QUEUE, WAKE
from tests.conftest import ROOT
from tests.integration.conftest import RedisServer, wait_until
from tests.integration.rig import BASE, Rig
from tests.integration.worker.test_workers import CONFIG
from tests.scale.servers import free_ports
from worker.celery_app import create_worker_app

POOLS = {
    "": ("w", "thread"), "-P threads -c 3": ("w", "thread"), "-P solo": ("w", "solo"),
    "-P prefork -c 2": ("w-1 w-2", "prefork"),
}  # fmt: skip
"""Options with the workers that they make, and the pool that Celery says it is."""

ADMIN = ("admin", "0123456789abcdef")

Start = Callable[[Sequence[str]], "subprocess.Popen[bytes]"]


class Home:
    """A configuration, and the commands that work by it."""

    def __init__(self, path: Path, url: str) -> None:
        self.path = path
        (path / "sitemapd.toml").write_text(CONFIG.format(url=url, base=BASE))
        self.env = {**os.environ, "SITEMAPD_CONFIG": str(path / "sitemapd.toml"),
                    "SITEMAPD_CONSUMER": "ours"}  # fmt: skip
        self.log = path / "log"

    def celery(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "celery", "-A", "worker.celery_app", *words]

    def start(self, command: Sequence[str]) -> subprocess.Popen[bytes]:
        with self.log.open("ab") as log:
            return subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log, env=self.env)

    def say(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.celery(*words), cwd=ROOT, env=self.env, capture_output=True, text=True,
            check=False, timeout=60,
        )  # fmt: skip

    def inspect(self, name: str, what: str) -> Any:
        """The answer of a node, which hears commands some time after its first beat.

        It is asked by name: who asks all waits for further answers until the time is over.
        """
        node = f"{name}@{socket.gethostname()}"
        answers = list[str]()

        def answered() -> bool:
            answers.append(self.say("inspect", what, "-d", node, "-t", "10", "--json").stdout)
            return bool(answers[-1])

        wait_until(answered, f"{node} answers {what}")
        (found,) = json.loads(answers[-1]).values()
        return found


def inspected(rig: Rig, url: str, name: str, what: str) -> Any:
    """The same without a process of its own, which takes two seconds of a processor to start."""
    node = f"{name}@{socket.gethostname()}"
    answers = list[Any]()
    with create_worker_app(rig.settings.model_copy(update={"redis_url": url})) as app:
        nodes = app.control.inspect([node], timeout=10)

        def answered() -> bool:
            answers.append(getattr(nodes, what)())
            return bool(answers[-1])

        wait_until(answered, f"{node} answers {what}")
    (found,) = answers[-1].values()
    return found


@pytest.fixture
def rig(store: redis.Redis, tmp_path: Path) -> Rig:
    return Rig(store, tmp_path / "public")


@pytest.fixture
def home(redis_server: RedisServer, tmp_path: Path) -> Home:
    return Home(tmp_path, redis_server.url)


@pytest.fixture
def start(home: Home) -> Iterator[Start]:
    running = []

    def begin(command: Sequence[str]) -> subprocess.Popen[bytes]:
        running.append(home.start(command))
        return running[-1]

    yield begin
    for process in running:
        if process.poll() is None:
            process.kill()
        process.wait(30)


def working(store: redis.Redis) -> dict[str, int]:
    """The workers that are working, with their processes."""
    return {
        each.name: each.beat.pid for each in WorkerRegistry(store).list()
        if each.beat and each.beat.state == "working"
    }  # fmt: skip


def works(rig: Rig, names: str) -> None:
    wait_until(lambda: " ".join(sorted(working(rig.client))) == names, f"{names} work")


def wakes(rig: Rig, url: str) -> None:
    """Send a wake-up."""
    with create_worker_app(rig.settings.model_copy(update={"redis_url": url})) as app:
        app.send_task(WAKE, ["demo"], queue=QUEUE)


def publishes(rig: Rig, url: str, page: str) -> None:
    """Send an event and its wake-up; wait until the files list the page."""
    rig.send({"type": "upsert", "loc": BASE + page})
    wakes(rig, url)
    wait_until(rig.quiet, "it is published")
    assert BASE + page in rig.listed()


@pytest.mark.parametrize("options", POOLS)
def test_an_event_becomes_visible_by_a_worker_of_any_pool(
    options: str, rig: Rig, home: Home, start: Start, redis_server: RedisServer
) -> None:
    names, pool = POOLS[options]
    process = start(home.celery("worker", "-Q", QUEUE, "-n", "w@%h", *options.split()))
    works(rig, names)

    publishes(rig, redis_server.url, "a")

    stats = inspected(rig, redis_server.url, "w", "stats")
    assert stats["total"][WAKE] >= 1
    assert stats["pool"]["implementation"] == f"celery.concurrency.{pool}:TaskPool"
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 0
    assert not working(rig.client), "nobody has to wait for heartbeats to fade"
    assert "Traceback" not in home.log.read_text()


def test_a_process_of_a_pool_that_dies_is_replaced_under_its_name(
    rig: Rig, home: Home, start: Start, redis_server: RedisServer
) -> None:
    start(home.celery("worker", "-n", "w@%h", "-P", "prefork", "-c", "2"))
    works(rig, "w-1 w-2")
    assert inspected(rig, redis_server.url, "w", "ping") == {"ok": "pong"}
    before = working(rig.client)

    os.kill(before["w-2"], signal.SIGKILL)

    wait_until(lambda: working(rig.client).get("w-2", before["w-2"]) != before["w-2"],
               "another is w-2", 60)  # fmt: skip
    assert working(rig.client)["w-1"] == before["w-1"]
    publishes(rig, redis_server.url, "a")


def test_no_process_of_a_pool_outlives_the_worker_that_hands_it_messages(
    rig: Rig, home: Home, start: Start
) -> None:
    process = start(home.celery("worker", "-n", "w@%h", "-P", "prefork", "-c", "2"))
    works(rig, "w-1 w-2")
    left = set(working(rig.client).values())

    process.kill()

    def ended() -> bool:
        for pid in [*left]:
            with suppress(OSError):
                if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z":
                    continue
            left.discard(pid)
        return not left

    wait_until(ended, "its processes end")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ("-P custom", "base is not supported"),
        ("-P prefork --pool-start-method spawn", "prefork needs --pool-start-method fork"),
    ],
)
def test_a_pool_that_cannot_work_is_refused_with_the_remedy(
    home: Home, options: str, says: str
) -> None:
    home.env["CELERY_CUSTOM_WORKER_POOL"] = "celery.concurrency.base:BasePool"

    refused = home.say("worker", *options.split())

    assert refused.returncode == 1
    assert says in refused.stderr
    assert "-P threads" in refused.stderr


def test_celery_inspects_a_worker_that_sitemapd_runs(
    rig: Rig, home: Home, start: Start, redis_server: RedisServer
) -> None:
    config = home.env["SITEMAPD_CONFIG"]
    start([sys.executable, "-m", "worker.main", "--config", config, "--threads", "2"])
    works(rig, "ours")

    assert home.inspect("ours", "ping") == {"ok": "pong"}
    queues = {each["name"] for each in inspected(rig, redis_server.url, "ours", "active_queues")}
    assert queues == {QUEUE, RECONCILE_QUEUE, NOTIFY_QUEUE}
    assert inspected(rig, redis_server.url, "ours", "active") == []
    assert home.inspect("ours", "stats")["pool"]["max-concurrency"] == 2
    assert "1 node online" in home.say("status", "-t", "10").stdout


def test_flower_shows_the_worker_and_its_tasks_to_those_with_a_password(
    rig: Rig, home: Home, start: Start, redis_server: RedisServer
) -> None:
    config = home.env["SITEMAPD_CONFIG"]
    start([sys.executable, "-m", "worker.main", "--config", config])
    works(rig, "ours")
    node, address = f"ours@{socket.gethostname()}", f"http://127.0.0.1:{free_ports(1)[0]}"
    home.env["FLOWER_BASIC_AUTH"] = ":".join(ADMIN)
    start(home.celery("flower", "--address=127.0.0.1", f"--port={address.rpartition(':')[2]}"))

    def seen(path: str) -> str:
        with suppress(httpx.TransportError):
            return httpx.get(address + path, auth=ADMIN, trust_env=False).text
        return ""

    def listed() -> bool:
        """Whether its task is there; a worker sends events once Flower has told it to."""
        wakes(rig, redis_server.url)
        return WAKE in seen("/api/tasks")

    wait_until(lambda: node in seen("/workers"), "the page lists the worker")
    wait_until(listed, "its tasks are listed")
    (task, *_) = json.loads(seen("/api/tasks")).values()
    assert (task["name"], task["worker"]) == (WAKE, node)
    assert httpx.get(f"{address}/workers", trust_env=False).status_code == 401


@pytest.mark.parametrize(
    "redis_url",
    [
        "redis://sitemapd:0123456789abcdef@127.0.0.1:1",
        "redis+sentinel://u:0123456789abcdef@127.0.0.1:1,127.0.0.2:1/m?sentinel_password=fedcba98",
    ],
)
def test_a_report_shows_no_password(tmp_path: Path, redis_url: str) -> None:
    home = Home(tmp_path, redis_url)

    report = home.say("report")

    assert report.returncode == 0, report.stderr
    assert "broker_url" in report.stdout
    assert "127.0.0.1" in report.stdout
    assert "0123456789abcdef" not in report.stdout
    assert "fedcba98" not in report.stdout
