"""A backup of a busy system, brought to a new home and back to the old one (RELIABILITY F22)."""

from __future__ import annotations

import json
import random
import shutil
import signal
import subprocess
import threading
from pathlib import Path

import pytest

from tests.faults.ledger import Ledger, Sent, lastmod_of, version_of
from tests.system.driver import SITEMAPD, System, wait_until

PAGES = 2_000
LATER = 30
"""Events acknowledged before the backup begins, and as many after it."""


def shard_files(system: System) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in system.root.glob("[!s]*-*.xml")}


def fill(system: System) -> None:
    for start in range(0, PAGES, 500):
        numbers = range(start, start + 500)
        system.send(*({"type": "upsert", "loc": f"{system.base}/{n}", "version": 1,
                       "lastmod": lastmod_of(1)} for n in numbers))  # fmt: skip


def another(system: System, home: Path) -> System:
    """A home with the configuration of `system` and nothing else."""
    home.mkdir()
    shutil.copy(system.home / "sitemapd.toml", home)
    return System(home)


def keep_sending(system: System, ledger: Ledger, stop: threading.Event, seed: int) -> None:
    chance = random.Random(seed)
    while not stop.is_set():
        sent = Sent(f"{system.base}/{chance.randrange(PAGES)}", ledger.next_version(), gone=False)
        system.send(
            {
                "type": "upsert", "loc": sent.loc, "version": sent.version,
                "lastmod": lastmod_of(sent.version),
            }
        )  # fmt: skip
        ledger.note([sent], "acked")


def backed_up_at_work(system: System, directory: Path) -> dict[str, Sent]:
    """Back up as the timer does, while senders are at work: what was acknowledged about each page
    before it began.
    """
    ledger, stop = Ledger(), threading.Event()
    ledger.next_version()  # 1 is what the pages have already
    threads = [
        threading.Thread(target=keep_sending, args=(system, ledger, stop, n), daemon=True)
        for n in (100, 101)
    ]
    for thread in threads:
        thread.start()
    try:
        wait_until(lambda: ledger.acked > LATER, "events are accepted")
        before = ledger.book().acked
        done = system.run("backup", str(directory), "--keep", "2", "--json")
        assert done.returncode == 0, done.stderr
        so_far = ledger.acked
        wait_until(lambda: ledger.acked > so_far + LATER, "events go on")
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    system.quiet()
    return before


@pytest.mark.timeout(300)
def test_what_was_acknowledged_before_a_backup_is_there_after_a_restore(
    system: System, tmp_path: Path
) -> None:
    file = tmp_path / "backups"
    file.mkdir()
    old = [f"sitemapd-2020010{day}T000000Z.backup" for day in (1, 2, 3)]
    for name in (*old, "notes"):
        (file / name).touch()
    fill(system)
    acknowledged = backed_up_at_work(system, file)
    assert sorted(path.name for path in file.iterdir())[:2] == ["notes", old[-1]]
    assert len(list(file.iterdir())) == 3
    assert system.run("backup", "--check", str(file)).returncode == 0

    new = another(system, tmp_path / "new")
    done = new.run("restore", str(file), "--json")
    assert done.returncode == 0, done.stderr
    new.start()
    assert new.run("rebuild", "--adopt").returncode == 0
    new.quiet()
    assert new.run("verify").returncode == 0

    published = new.published()
    assert len(published) == PAGES
    older = [
        loc for loc, sent in acknowledged.items() if version_of(published[loc] or "") < sent.version
    ]
    assert older == []
    _back_to_the_old_home(system, new, file)
    assert new.stop() == 0


def _back_to_the_old_home(system: System, new: System, file: Path) -> None:
    """Its files are newer than the backup: they stay until somebody says --adopt."""
    refused = system.run("restore", str(file), "--replace")
    assert refused.returncode == 1
    assert "stop `sitemapd up`" in refused.stderr
    system.stop()
    newer = shard_files(system)
    done = system.run("restore", str(file), "--replace", "--json")
    assert done.returncode == 0, done.stderr
    assert "sitemapd rebuild --site demo --adopt" in done.stdout

    system.start()
    event = {"type": "upsert", "loc": f"{system.base}/after", "version": 1}
    system.send(event)
    new.send(event)
    log = system.home / "logs" / "worker.log"
    told = "publishing stopped"
    wait_until(lambda: told in log.read_text(), "the alarm is in the log")
    assert "sitemapd rebuild --site demo --adopt" in log.read_text()
    assert shard_files(system) == newer

    assert system.run("rebuild", "--adopt").returncode == 0
    for each in (system, new):
        each.quiet()
    assert system.run("verify").returncode == 0
    assert shard_files(system) == shard_files(new)
    assert newer != shard_files(new)


def test_a_home_that_is_stopped_is_backed_up_and_restored_after_any_kill(
    system: System, tmp_path: Path
) -> None:
    file = tmp_path / "backup"
    system.send(*({"type": "upsert", "loc": f"{system.base}/{n}"} for n in range(300)))
    system.quiet()
    system.stop()
    saved = system.run("backup", str(file), "--json")
    assert saved.returncode == 0, saved.stderr

    new = another(system, tmp_path / "new")
    for sign in ("redis/lock", "redis/redis.sock"):
        killed = subprocess.Popen([SITEMAPD, "restore", file, "--replace", "--home", new.home])
        wait_until(lambda sign=sign: (new.home / sign).exists(), "the restore is at it")  # type: ignore[misc]
        killed.send_signal(signal.SIGKILL)
        killed.wait()

    def restored() -> bool:
        """The server of a restore that was killed ends with it, a moment later."""
        done = new.run("restore", str(file), "--replace", "--json")
        assert done.returncode == 0 or "is in use by process" in done.stderr, done.stderr
        return done.returncode == 0

    wait_until(restored, "restored")
    again = new.run("backup", str(tmp_path / "again"), "--json")
    assert json.loads(again.stdout)["sites"] == json.loads(saved.stdout)["sites"]
