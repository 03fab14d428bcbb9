"""`sitemapd status`: what waits, for how long, who has it, how fast it goes."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import redis
from typer.testing import CliRunner, Result

from deploy.cli.program import app
from shared.admin.site_status import Inspector
from shared.store.operations.worker_registry import HEARTBEAT
from tests.integration.conftest import RedisServer
from tests.integration.rig import BASE, Rig

CONFIG = """
redis_url = "{url}"
[sites.demo]
base_url = "{base}"
web_root = "public"
tokens = ["0123456789abcdef"]
publish_interval = 0
"""


@pytest.fixture
def rig(store: redis.Redis, tmp_path: Path) -> Rig:
    return Rig(store, tmp_path / "public")


@pytest.fixture
def home(redis_server: RedisServer, tmp_path: Path) -> Path:
    (tmp_path / "sitemapd.toml").write_text(CONFIG.format(url=redis_server.url, base=BASE))
    return tmp_path


def page(name: object) -> dict[str, Any]:
    return {"type": "upsert", "loc": f"{BASE}{name}"}


def status(rig: Rig) -> dict[str, Any]:
    return Inspector(rig.client, rig.name, rig.site).status()


def watch(home: Path, *arguments: str) -> Result:
    given = ["status", "--watch", "--interval", "0.1", *arguments, "--home", str(home)]
    return CliRunner().invoke(app, given)


def test_a_site_that_never_had_an_event_has_nothing_waiting(rig: Rig) -> None:
    assert status(rig) | {
        "waiting_events": 0, "oldest_s": None, "in_flight": 0, "accepted_events": 0, "publishes": 0,
        "dead_events": 0, "paused": [], "failing": [],
    } == status(rig)  # fmt: skip


def test_the_oldest_event_that_waits_is_timed_by_the_clock_of_redis(rig: Rig) -> None:
    """RELIABILITY F12: the clock here may be an hour off."""
    seconds, _ = rig.client.time()  # type: ignore[misc]
    rig.client.xadd(rig.keys.inbox, {"e": b"old"}, id=f"{(seconds - 100) * 1000}-0")
    rig.send(page("new"))

    said = status(rig)

    assert said["waiting_events"] == 2
    assert 99 <= said["oldest_s"] < 160


def test_events_that_a_worker_has_and_has_not_settled_are_in_flight(rig: Rig) -> None:
    rig.send(*(page(n) for n in range(3)))
    assert status(rig)["in_flight"] == 0, "no worker ever came"
    rig.inbox.read("w1", 2)

    said = status(rig)

    assert (said["waiting_events"], said["in_flight"], said["accepted_events"]) == (3, 2, 3)


def test_what_was_accepted_and_published_is_counted_for_good(rig: Rig) -> None:
    rig.do(page("a"))
    rig.do(page("b"), page("c"))

    said = status(rig)

    assert (said["waiting_events"], said["accepted_events"], said["publishes"]) == (0, 3, 2)


def test_a_look_without_a_terminal_is_a_plain_block(rig: Rig, home: Path) -> None:
    rig.do(page("a"))
    rig.client.set(f"{HEARTBEAT}old", "1", ex=60)
    rig.client.zadd("{_sitemapd}:workers", {"old": time.time()})

    done = watch(home, "--count", "2")

    assert done.exit_code == 0, done.output
    assert done.stdout.count("last publish") == 2
    assert "\x1b" not in done.stdout
    assert [line.split()[:3] for line in done.stdout.splitlines() if line.startswith("demo")] == [
        ["demo", "1", "0"], ["demo", "1", "0"],
    ]  # fmt: skip
    assert done.stdout.count("older") == 2


def test_rates_are_differences_between_two_looks(rig: Rig, home: Path) -> None:
    command = [
        sys.executable, "-c", "from deploy.cli.entry import main; main()", "status", "--watch",
        "--json", "--interval", "0.2", "--home", str(home),
    ]  # fmt: skip
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        (first,) = json.loads(process.stdout.readline())["sites"]
        rig.do(page("a"), page("b"))
        rates = list[dict[str, Any]]()
        while not any(each["publishes_per_s"] for each in rates):
            rates.append(json.loads(process.stdout.readline())["sites"][0])
        process.send_signal(signal.SIGINT)
        process.stdout.read()

    assert process.returncode == 0
    assert first["accepted_per_s"] is None
    assert max(each["accepted_per_s"] for each in rates) > 0
    assert rates[-1]["accepted_events"] == 2


def test_the_view_on_a_terminal_is_drawn_in_place_and_ctrl_c_leaves_it_clean(
    rig: Rig, home: Path
) -> None:
    rig.do(page("a"))
    ours, theirs = pty.openpty()
    command = [
        sys.executable,
        "-c",
        "from deploy.cli.entry import main; main()",
        "status",
        "--watch",
    ]
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "200", "LINES": "50"}
    process = subprocess.Popen(
        [*command, "--interval", "0.1", "--home", str(home)],
        stdin=theirs, stdout=theirs, stderr=theirs, env=environment,
    )  # fmt: skip
    os.close(theirs)
    shown = b""
    while shown.count(b"last publish") < 3:
        shown += os.read(ours, 65536)
    process.send_signal(signal.SIGINT)
    try:
        while more := os.read(ours, 65536):
            shown += more
    except OSError:
        pass  # Linux's way to say that the other end is closed
    os.close(ours)

    assert process.wait(30) == 0
    assert b"\x1b[?25l" in shown, "the cursor is hidden while it draws"
    assert shown.rindex(b"\x1b[?25h") > shown.rindex(b"\x1b[?25l"), "and there again"
    assert b"Traceback" not in shown
    assert b"Aborted" not in shown


def test_a_store_that_goes_away_is_shown_and_watched_on(
    fragile_redis: RedisServer, tmp_path: Path
) -> None:
    (tmp_path / "sitemapd.toml").write_text(CONFIG.format(url=fragile_redis.url, base=BASE))
    fragile_redis.kill()
    try:
        done = watch(tmp_path, "--count", "2")
    finally:
        fragile_redis.start()

    assert done.exit_code == 0
    assert done.stdout.count("no answer: Redis does not answer") == 2
