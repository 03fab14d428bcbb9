"""What is done on the command line stands in the audit log, once, whatever came of it."""

from __future__ import annotations

import getpass
import os
import pwd
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import NoReturn

import pytest
import redis
from typer.testing import CliRunner, Result

from deploy.cli.program import app
from shared.store.operations.audit_log import AuditLog
from shared.store.operations.worker_registry import WorkerRegistry
from tests.integration.conftest import RedisServer, Wait
from tests.integration.logs import silence
from tests.integration.rig import BASE, Rig
from tests.integration.worked import beat
from tests.unit.worker.sources.cms import Asked, Reply, served

CONFIG = """
redis_url = "{url}"
[sites.demo]
base_url = "{base}"
web_root = "public"
tokens = ["0123456789abcdef"]
publish_interval = 0
[sites.demo.notify.bing]
key = "canary-key-1234"
"""
Entry = tuple[str, str, str, str, bool]


@pytest.fixture
def rig(store: redis.Redis, tmp_path: Path) -> Rig:
    rig = Rig(store, tmp_path / "public")
    rig.do(*({"type": "upsert", "loc": f"p/{n}"} for n in range(4)))
    return rig


@pytest.fixture
def home(redis_server: RedisServer, rig: Rig, tmp_path: Path) -> Path:
    text = CONFIG.format(url=redis_server.url, base=rig.site.base_url)
    (tmp_path / "sitemapd.toml").write_text(text)
    return tmp_path


def run(home: Path, *arguments: str) -> Result:
    with silence():
        return CliRunner().invoke(app, [*arguments, "--home", str(home)])


def entries(store: redis.Redis) -> list[Entry]:
    found = AuditLog(store).read()[::-1]
    assert {(each.who, each.way) for each in found} <= {(f"cli:{getpass.getuser()}", "cli")}
    return [(each.action, each.site, each.subject, each.outcome, each.done) for each in found]


def source(home: Path, *paths: str) -> str:
    (home / "pages.csv").write_text("\n".join(["loc", *(BASE + path for path in paths)]) + "\n")
    return f"csv:{home}/pages.csv"


def test_what_changes_what_is_published_is_recorded(
    home: Path, rig: Rig, store: redis.Redis
) -> None:
    named = source(home, "p/0", "p/1", "p/2", "new")
    store.hset(rig.keys.held, "pages/1", f"{int(time.time())} 1 4")
    for words in (
        ("confirm",), ("publish",), ("rebuild", "--adopt"),
        ("reconcile", "--against", named), ("import", "--from", named),
        ("notify", "replay", "demo"),
    ):  # fmt: skip
        result = run(home, *words)
        assert result.exit_code == 0, (words, result.output, result.exception)

    assert [(each[0], *each[2:]) for each in entries(store)] == [
        ("confirm", "", "pages/1 may shrink from 4 to 1 pages", True),
        ("publish", "", "0 files written or removed", True),
        ("rebuild", "", "existing files adopted; 0 files written or removed", True),
        (
            "reconcile", f"site against {named}",
            "source 4, listed 4, added 1, changed 0, deleted 1", True,
        ),
        ("import", named, "read 4, sent 4, refused 0, skipped 0, united 0", True),
        ("notify replay", "bing", "0 pages queued again, and all pauses ended", True),
    ]  # fmt: skip
    assert {each[1] for each in entries(store)} == {"demo"}


def test_a_backup_that_is_put_back_is_recorded(home: Path, store: redis.Redis) -> None:
    file = str(home / "saved")
    assert run(home, "backup", file).exit_code == 0

    assert run(home, "restore", file).exit_code == 1
    assert run(home, "restore", file, "--replace").exit_code == 0

    refused, done = entries(store)
    assert (refused[:3], refused[4]) == (("restore", "demo", file), False)
    assert (done[:3], done[4]) == (("restore", "demo", file), True)
    assert done[3].startswith("demo as of 2")


def test_what_is_wanted_of_a_worker_is_recorded(home: Path, store: redis.Redis) -> None:
    WorkerRegistry(store).beat("w1", beat())
    for wish in ("quiet", "resume", "stop"):
        run(home, "workers", wish, "w1", "--wait", "0")
    run(home, "workers", "stop", "nobody")

    assert entries(store)[:3] == [
        ("workers quiet", "", "w1", "asked to be quiet", True),
        ("workers resume", "", "w1", "asked to work", True),
        ("workers stop", "", "w1", "asked to stop", True),
    ]
    assert [(each[0], each[4]) for each in entries(store)[3:]] == [("workers stop", False)]


def test_what_was_refused_is_recorded_as_not_done(home: Path, store: redis.Redis) -> None:
    assert run(home, "confirm", "pages/7").exit_code == 1
    assert run(home, "reconcile", "--against", source(home, "p/0")).exit_code == 1

    assert [(each[0], each[4]) for each in entries(store)] == [
        ("confirm", False), ("reconcile", False),
    ]  # fmt: skip
    assert "not held; held are: none" in entries(store)[0][3]


def test_an_import_that_is_interrupted_is_recorded_without_the_keys_of_its_source(
    home: Path, store: redis.Redis, until: Wait
) -> None:
    asked, go = threading.Event(), threading.Event()

    def wait(_: Asked) -> Reply:
        asked.set()
        go.wait(60)
        return Reply({}, 404)

    with served(wait) as address:
        named = f"{address.replace('://', '://user:canary-pass@')}/sitemap.xml?key=canary-key"
        command = [
            Path(sys.executable).with_name("sitemapd"), "import", "--home", home,
            "--from", f"sitemap:{named}",
        ]  # fmt: skip
        with subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        ) as process:
            until(asked.is_set, "the source is asked", 60)
            process.send_signal(signal.SIGINT)
            until(lambda: entries(store), "the import is recorded")
            go.set()
            _, said = process.communicate(timeout=60)

    assert process.returncode == 130
    said = said.decode().splitlines()
    again = f"--home {home} --from sitemap:{address}/sitemap.xml"
    assert said == [
        "interrupted; 0 entries were read, 0 pages accepted: these stay, and are published",
        f"go on with: sitemapd import {again}",
        "and with the credentials of the source, which are left out here",
    ]
    assert entries(store) == [
        ("import", "demo", f"sitemap:{address}/sitemap.xml", "interrupted", False)
    ]


def test_who_has_no_name_is_recorded_by_number(
    home: Path, store: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A container may run under any uid, with no line in passwd and no LOGNAME."""
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(name, raising=False)

    def unknown(uid: int) -> NoReturn:
        raise KeyError(f"getpwuid(): uid not found: {uid}")

    monkeypatch.setattr(pwd, "getpwuid", unknown)
    for words in (("queue", "pause"), ("publish",), ("queue", "resume")):
        assert run(home, *words).exit_code == 0, words

    assert {each.who for each in AuditLog(store).read()} == {f"cli:{os.getuid()}"}
