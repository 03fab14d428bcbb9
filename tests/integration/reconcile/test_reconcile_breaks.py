"""Reconciles that are killed, and that find no room for what they found."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import redis

from tests.integration.conftest import RedisServer
from tests.integration.reconcile.reconciled import differences, reconcile, record
from tests.integration.rig import Rig
from worker.sources import Item

PAGES = 1_300
HERE = Path(__file__).resolve().parents[3]

KILLED = """
import os, signal, sys
from pathlib import Path
import redis
from tests.integration.reconcile.reconciled import reconcile
from tests.integration.rig import Rig
from tests.integration.reconcile.test_reconcile_breaks import source

class Killed(redis.Redis):
    def xlen(self, name):
        if name.endswith("inbox") and super().xlen(name) >= 1000:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().xlen(name)

with Killed.from_url(sys.argv[1]) as client:
    reconcile(Rig(client, Path(sys.argv[2])), source())
"""

NO_ROOM = """
import resource, signal
from shared.errors import ReconcileError
from worker.reconcile.diff_spool import DiffSpool, SourceDifference

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
with DiffSpool() as findings:
    try:
        for n in range(400):
            findings.found(SourceDifference("extra", f"https://a.example/{n}", "x" * 100_000, None))
    except ReconcileError as error:
        print(error)
"""


def source() -> list[Item]:
    return [record(f"p/{n}") for n in range(PAGES)]


def test_a_reconcile_that_was_killed_is_simply_started_again(
    store: redis.Redis, redis_server: RedisServer, tmp_path: Path
) -> None:
    rig = Rig(store, tmp_path)

    killed = subprocess.run(
        [sys.executable, "-c", KILLED, redis_server.url, str(tmp_path)], cwd=HERE, check=False
    )
    assert killed.returncode == -signal.SIGKILL
    assert 0 < rig.inbox.waiting() < PAGES
    assert 0 < store.pttl(rig.keys.reconcile) <= 60_000
    store.delete(rig.keys.reconcile)  # as time would
    rig.settle()
    assert len(rig.listed()) == 1000
    done = reconcile(rig, source())

    assert done.added == PAGES - 1000
    assert differences(rig, source()) == set()
    rig.check()


def test_no_room_for_what_was_found_is_an_error_that_says_so() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", NO_ROOM], cwd=HERE, check=True, capture_output=True, text=True
    )

    assert "SQLITE_TMPDIR" in ran.stdout
