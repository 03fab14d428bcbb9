"""The parts one by one, as a supervisor starts them, on a Redis with the shipped settings."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psutil
import pytest

from tests.system.driver import SITEMAPD, wait_until
from tests.system.nginx import HOST, PROGRAM, Nginx, needs
from tests.system.parts import BASE, CONFIG, PARTS, PASSWORD, TOKEN, Parts, servers


def as_user(*commands: bytes) -> tuple[bytes, ...]:
    return (f"AUTH sitemapd {PASSWORD}".encode(), *commands)


def test_the_main_job_runs_in_parts_with_the_least_of_rights(parts: Parts) -> None:
    parts.redis()
    for name in PARTS:
        parts.part(name)
    wait_until(lambda: parts.post("a") == 202, "an event is accepted")
    wait_until(lambda: parts.lists("a"), "it is published")
    wait_until(lambda: parts.command("run", "alive", "--name", "w1").returncode == 0, "w1 lives")
    (parts.home / "pages.ndjson").write_text(
        "".join(f'{{"loc":"{BASE}/{n}"}}\n' for n in range(200))
    )
    for command in (
        ["import", "--from", f"ndjson:{parts.home / 'pages.ndjson'}"], ["status"], ["verify"],
        ["entry", f"{BASE}/7"], ["rebuild"], ["backup", str(parts.home / "backup")],
        ["workers"], ["status", "--watch", "--count", "1"], ["doctor", "--offline"],
    ):  # fmt: skip
        done = parts.command(*command)
        assert done.returncode == 0, (command, done.stdout, done.stderr)
    wait_until(lambda: b"cmdstat_brpop" in stats(parts), "messages are taken")
    assert refused(stats(parts)) == []

    assert {name: parts.stop(name) for name in ("web", "worker", "schedule")} == {
        "web": 0, "worker": 0, "schedule": 0,
    }  # fmt: skip
    assert not parts.socket.exists()
    assert parts.command("run", "alive", "--name", "nobody").returncode == 1
    restore = ["restore", str(parts.home / "backup"), "--replace"]
    wait_until(lambda: "workers are at it" not in parts.command(*restore).stderr, "w1 is forgotten")
    assert "may not restore: allow it with" in parts.command(*restore).stderr
    logs = "".join(parts.log(name) for name in (*PARTS, "redis"))
    assert '"event": "published"' in logs
    assert PASSWORD not in logs
    assert TOKEN not in logs


def children(parts: Parts) -> dict[int, float]:
    """Every process of the parts by id, with the time of its start."""
    found = [psutil.Process(each.pid) for each in parts.running.values()]
    found += [child for each in found for child in each.children(recursive=True)]
    return {each.pid: each.create_time() for each in found}


def test_a_changed_configuration_is_in_force_in_every_process_and_restarts_none(
    parts: Parts,
) -> None:
    parts.redis()
    for name in PARTS:
        parts.part(name)
    wait_until(lambda: parts.post("a") == 202, "an event is accepted")
    wait_until(lambda: parts.lists("a"), "it is published")

    def in_force(section: str) -> list[str]:
        done = parts.command("section", "add", "demo", section, "--json")
        assert done.returncode == 0, done.stderr
        return sorted(each.split()[0] for each in json.loads(done.stdout)["in_force"])

    wait_until(
        lambda: in_force(f"s{time.monotonic_ns()}x") == ["schedule", "web", "web", "worker"],
        "all four say so", 60,
    )  # fmt: skip
    before = children(parts)
    for name in PARTS:
        parts.running[name].send_signal(signal.SIGHUP)

    assert in_force("after") == ["schedule", "web", "web", "worker"]
    assert parts.post("b") == 202
    wait_until(lambda: parts.lists("b"), "it is published")
    assert children(parts) == before
    assert refused(stats(parts)) == []

    parts.running["web"].send_signal(signal.SIGUSR1)
    web = psutil.Process(parts.running["web"].pid)
    wait_until(
        lambda: not before.keys() & {each.pid for each in web.children()}, "they are replaced", 60
    )
    wait_until(lambda: parts.post("c") == 202, "the new ones answer")


def stats(parts: Parts) -> bytes:
    return parts.redis_says(*as_user(b"INFO commandstats"))


def refused(stats: bytes) -> list[str]:
    """The commands that somebody was not allowed to use."""
    rejected = re.findall(r"cmdstat_(\S+?):.*rejected_calls=[1-9]", stats.decode())
    return [name for name in rejected if name != "ping"]  # of these tests, before they are let in


@pytest.mark.parametrize(
    "command",
    [
        b"CONFIG SET dir /tmp", b"FLUSHALL", b"FLUSHDB", b"KEYS *", b"SHUTDOWN NOSAVE", b"SAVE",
        b"ACL LIST", b"MODULE LIST", b"REPLICAOF 127.0.0.1 1", b"MIGRATE 127.0.0.1 1 k 0 1",
        b"SCRIPT FLUSH", b"FUNCTION FLUSH", b"EVAL 'return 1' 0", b"CLIENT KILL ID 1", b"MONITOR",
        b"CONFIG REWRITE", b"BGREWRITEAOF", b"SWAPDB 0 1", b"CLIENT PAUSE 1000",
    ],
)  # fmt: skip
def test_the_user_of_the_service_may_not(powerless: Parts, command: bytes) -> None:
    assert b"NOPERM" in powerless.redis_says(*as_user(command))


@pytest.fixture(scope="module")
def powerless(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Parts]:
    parts = Parts(tmp_path_factory.mktemp("powerless") / "home", servers()[-1])
    parts.redis()
    yield parts
    parts.stop("redis")


def test_nobody_gets_in_without_the_password(powerless: Parts) -> None:
    assert b"NOAUTH" in powerless.redis_says(b"GET a")
    assert b"WRONGPASS" in powerless.redis_says(b"AUTH sitemapd guessed")
    assert b"NOAUTH" in powerless.redis_says(b"CONFIG GET *")


def test_web_answers_503_and_the_worker_waits_until_there_is_a_redis(parts: Parts) -> None:
    for name in PARTS:
        parts.part(name)
    wait_until(lambda: parts.post("early") == 503, "there is no Redis")
    for name in ("worker", "schedule"):
        wait_until(lambda name=name: "waiting for Redis" in parts.log(name), f"{name} says so")
    assert parts.stop("schedule") == 0

    parts.redis()

    wait_until(lambda: parts.post("later") == 202, "an event is accepted")
    wait_until(lambda: parts.lists("later"), "it is published")


def test_a_redis_that_may_lose_events_is_refused(parts: Parts) -> None:
    parts.redis("--appendfsync", "everysec")

    done = parts.command("run", "worker")

    assert done.returncode == 1
    assert "appendfsync is 'everysec'" in done.stdout + done.stderr


@pytest.mark.parametrize("part", PARTS)
def test_a_part_alone_needs_a_redis_that_is_named(tmp_path: Path, part: str) -> None:
    (tmp_path / "sitemapd.toml").write_text(CONFIG)

    done = subprocess.run(
        [SITEMAPD, "run", part, "--home", tmp_path], capture_output=True, text=True, timeout=60,
        check=False, env={k: v for k, v in os.environ.items() if k != "SITEMAPD_REDIS_URL"},
    )  # fmt: skip

    assert done.returncode == 78
    assert "redis_url" in done.stderr
    assert "sitemapd up" in done.stderr


def test_nginx_passes_on_every_refusal_of_a_long_body(parts: Parts, tmp_path: Path) -> None:
    """Not its own 503, after which the sender would come again for ever."""
    needs(PROGRAM)
    nginx = Nginx(tmp_path / "nginx", parts.home / "public", f"unix:{parts.socket}")
    parts.part("web")
    nginx.start()
    body = b" " * 1_048_576

    def status(method: str, path: str, sent: bytes = b"") -> int:
        with closing(http.client.HTTPConnection(HOST, nginx.port, timeout=10)) as connection:
            connection.request(method, path, sent, {"Content-Type": "text/plain"})
            return connection.getresponse().status

    try:
        wait_until(lambda: status("GET", "/healthz") == 200, "nginx reaches the web part")
        found = [status("POST", "/v1/sites/demo/events", body) for _ in range(40)]
    finally:
        nginx.stop()

    assert set(found) == {415}
