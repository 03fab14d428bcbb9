"""A backup is whole or refused; a restore is all of a site or nothing, and loses no event."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import redis

from deploy.backups.archive import ArchiveHead, Backup, write
from deploy.backups.restore import Restore
from shared.errors import BackupError, PublishError
from shared.store.keys import Keys
from shared.store.operations.worker_registry import HEARTBEAT
from tests.integration.conftest import RedisServer
from tests.integration.logs import silence
from tests.integration.rig import Rig, check_keys

SITE = "demo"


def upsert(loc: str, **members: Any) -> dict[str, Any]:
    return {"type": "upsert", "loc": loc, **members}


def state(client: redis.Redis) -> dict[bytes, Any]:
    """Every key of every site but those that pass by, as a client sees it."""
    fleeting = (b"}:awake", b"}:lease")
    return {
        key: (client.pexpiretime(key), _value(client, key))
        for key in client.scan_iter("{*")
        if not key.endswith(fleeting)
    }


def _value(client: redis.Redis, key: bytes) -> Any:
    readers: dict[bytes, Callable[[], Any]] = {
        b"string": lambda: client.get(key),
        b"hash": lambda: client.hgetall(key),
        b"zset": lambda: client.zrange(key, 0, -1, withscores=True),
        b"stream": lambda: (
            client.xrange(key),
            client.xinfo_stream(key)["last-generated-id"],
            [(row["name"], row["pending"]) for group in client.xinfo_groups(key)
             for row in client.xinfo_consumers(key, group["name"])],
            [client.xpending(key, group["name"]) for group in client.xinfo_groups(key)],
        ),
    }  # fmt: skip
    return readers[client.type(key)]()


def put_back(client: redis.Redis, path: Path, *sites: str, **options: Any) -> dict[str, int]:
    with closing(Backup(path)) as saved:
        restore = Restore(client, saved, sites or tuple(saved.head.sites))
        return restore.run(**({"replace": False, "alone": False} | options))


@pytest.fixture
def rig(store: redis.Redis, tmp_path: Path) -> Rig:
    return Rig(store, tmp_path / "public", shard_urls=4, robots="create")


@pytest.fixture
def saved(rig: Rig, tmp_path: Path) -> Path:
    """A backup of nine pages, with three events waiting of which two were given to a worker."""
    rig.do(*(upsert(f"p/{n}", id=str(n)) for n in range(9)), {"type": "delete", "loc": "gone"})
    rig.send(upsert("w/1"), upsert("w/2"), upsert("w/3"))
    rig.inbox.read("w1", 2)
    write(rig.client, [SITE], tmp_path / "backup")
    return tmp_path / "backup"


@pytest.fixture
def other(every_engine: list[RedisServer]) -> Iterator[redis.Redis]:
    """An empty database of another engine, if there is one; else of the same."""
    with redis.Redis.from_url(every_engine[-1].url + "?db=5") as client:
        client.flushdb()
        yield client
        client.flushdb()


def test_what_is_restored_is_what_was_saved(rig: Rig, saved: Path, other: redis.Redis) -> None:
    before = state(rig.client)

    put_back(other, saved)

    assert state(other) == before
    check_keys(other)


def test_events_that_waited_are_worked_on_after_a_restore(
    rig: Rig, saved: Path, other: redis.Redis, tmp_path: Path
) -> None:
    put_back(other, saved)
    again = Rig(other, tmp_path / "elsewhere", shard_urls=4, robots="create")

    again.settle()
    rig.settle()

    pages = {f"https://www.example.com/{path}" for path in ("w/1", "w/2", "w/3")}
    assert pages < set(again.listed())
    assert again.shard_files() == rig.shard_files()
    again.check()


def test_the_head_says_what_is_in_it(rig: Rig, saved: Path) -> None:
    with closing(Backup(saved)) as backup:
        head, names = backup.head, {key.name for _, key in backup.keys([SITE])}

    site, run = head.sites[SITE], rig.state.run("")
    assert (site.urls, site.shards, site.waiting, site.pending) == (9, 3, 3, 2)
    assert (site.run, site.publishes) == run[:2]
    assert site.keys == len(names) == len(state(rig.client))
    assert json.loads(saved.read_bytes().partition(b"\n")[0])["format"] == "sitemapd backup"
    assert stat.S_IMODE(saved.stat().st_mode) == 0o600


def test_only_the_sites_asked_for_are_in_it(rig: Rig, tmp_path: Path) -> None:
    two = Rig(rig.client, tmp_path / "two", name="two")
    rig.do(upsert("a"))
    two.do(upsert("b"))
    rig.client.set("a stranger's", "key")

    head = write(rig.client, ["two"], tmp_path / "one")
    write(rig.client, [SITE, "two"], tmp_path / "both")

    assert list(head.sites) == ["two"]
    assert b"stranger" not in (tmp_path / "both").read_bytes()
    with closing(Backup(tmp_path / "one")) as backup:
        assert {site for site, _ in backup.keys([SITE, "two"])} == {"two"}
    before = state(rig.client)
    rig.do(upsert("c"))
    put_back(rig.client, tmp_path / "both", "two", replace=True)
    assert rig.pages.lookup.count() == 2
    assert {k: v for k, v in state(rig.client).items() if k.startswith(b"{two}")} == {
        k: v for k, v in before.items() if k.startswith(b"{two}")
    }


def test_nothing_is_never_put_over_a_backup(rig: Rig, saved: Path) -> None:
    before = saved.read_bytes()
    rig.client.flushall()

    with pytest.raises(BackupError, match="nothing to back up"):
        write(rig.client, [SITE], saved)

    assert saved.read_bytes() == before
    assert sorted(os.listdir(saved.parent)) == ["backup", "public"]


@pytest.mark.parametrize("at", [0, 30, 200, -200, -33, -1])
def test_a_damaged_file_is_refused(saved: Path, at: int) -> None:
    data = bytearray(saved.read_bytes())
    data[at] ^= 4
    saved.write_bytes(data)

    with pytest.raises(BackupError, match=r"damaged|no backup"):
        Backup(saved)


@pytest.mark.parametrize("cut", [1, 32, 33, 1000, 10**9])
def test_a_file_that_is_cut_off_is_refused(saved: Path, cut: int) -> None:
    saved.write_bytes(saved.read_bytes()[:-cut])

    with pytest.raises(BackupError, match=r"cut off|no backup"):
        Backup(saved)


@pytest.mark.parametrize("version", [0, 2, None])
def test_another_format_is_refused_and_says_who_wrote_it(saved: Path, version: int | None) -> None:
    line, _, rest = saved.read_bytes().partition(b"\n")
    head = json.loads(line) | {"version": version, "sitemapd": "9.9.9"}
    saved.write_bytes(json.dumps(head).encode() + b"\n" + rest)

    with pytest.raises(BackupError, match=rf"format {version}, written by sitemapd 9\.9\.9"):
        Backup(saved)


def test_any_other_file_is_refused(tmp_path: Path) -> None:
    for content in (b"", b"[]\n", b'{"format": "x"}\n', b"REDIS0010", os.urandom(3000)):
        (tmp_path / "file").write_bytes(content)
        with pytest.raises(BackupError, match="no backup of sitemapd"):
            Backup(tmp_path / "file")
    with pytest.raises(BackupError, match="No such file"):
        Backup(tmp_path / "none")


def test_a_state_that_is_there_is_replaced_only_if_told(rig: Rig, saved: Path) -> None:
    before = state(rig.client)
    rig.settle()
    rig.do(upsert("newer"), {"type": "delete", "loc": "p/1"})
    newer = state(rig.client)

    with pytest.raises(BackupError, match=r"12 URLs, 0 events waiting.*--replace"):
        put_back(rig.client, saved)
    assert state(rig.client) == newer

    put_back(rig.client, saved, replace=True)
    assert state(rig.client) == before
    assert not rig.client.keys("{demo}~*")


def test_events_that_come_in_meanwhile_are_not_swept_away_unasked(rig: Rig, saved: Path) -> None:
    """The web process may run: what it accepts between the look and the swap is seen."""
    rig.client.flushall()
    with closing(Backup(saved)) as backup:
        restore = Restore(rig.client, backup, [SITE])
        with pytest.raises(BackupError, match="1 events waiting"):
            restore.run(replace=False, alone=False, seen=lambda _: rig.send(upsert("new")) and None)

    assert rig.inbox.waiting() == 1
    put_back(rig.client, saved, replace=True)


def test_it_is_refused_while_a_worker_is_alive(rig: Rig, saved: Path) -> None:
    rig.client.flushall()
    rig.client.set(HEARTBEAT + "w7", "1", ex=10)

    with pytest.raises(BackupError, match=r"workers are at it \(w7\)"):
        put_back(rig.client, saved)
    assert not rig.client.keys("{demo}*")

    put_back(rig.client, saved, alone=True)


def test_of_two_restores_one_wins_and_the_other_changes_nothing(rig: Rig, saved: Path) -> None:
    rig.client.flushall()
    once = iter([True])

    def meanwhile(_: int) -> None:
        if next(once, False):
            put_back(rig.client, saved, replace=True)

    with closing(Backup(saved)) as backup:
        first = Restore(rig.client, backup, [SITE])
        with pytest.raises(BackupError, match="taken over"):
            first.run(replace=True, alone=False, seen=meanwhile)

    assert rig.pages.lookup.count() == 9


def test_an_older_state_publishes_nothing_until_the_files_are_adopted(
    rig: Rig, tmp_path: Path
) -> None:
    """RELIABILITY F22: an hour-old backup under newer files."""
    rig.do(*(upsert(f"p/{n}") for n in range(9)))
    write(rig.client, [SITE], tmp_path / "old")
    rig.do(*(upsert(f"new/{n}") for n in range(9)), {"type": "delete", "loc": "p/3"})
    newer = rig.files()

    put_back(rig.client, tmp_path / "old", replace=True)
    rig.send(upsert("after"))
    with silence():
        rig.pump().run()

    assert rig.files() == newer
    with pytest.raises(PublishError, match="sitemapd rebuild --site demo --adopt"):
        rig.pump().publisher.publish()
    audit = rig.audit()
    audit.publisher.adopt()
    audit.rebuild()
    rig.settle()
    assert set(rig.listed()) == {f"https://www.example.com/{p}" for p in
                                 ("after", *(f"p/{n}" for n in range(9)))}  # fmt: skip
    rig.check()


# Runs a backup or a restore and kills itself after so many bytes or keys.
DYING = """
import os, signal, sys
from contextlib import closing
from pathlib import Path
from deploy.backups.archive import Backup, write
from deploy.backups import restore
from shared.store.connection import connect
what, url, path, steps = sys.argv[1], sys.argv[2], Path(sys.argv[3]), int(sys.argv[4])
def seen(_):
    global steps
    steps -= 1
    if steps < 0:
        os.kill(os.getpid(), signal.SIGKILL)
client = connect(url, 10.0)
if what == "backup":
    write(client, ["demo"], path, seen)
else:
    restore.BATCH_KEYS = 5
    with closing(Backup(path)) as backup:
        restore.Restore(client, backup, ["demo"]).run(replace=True, alone=True, seen=seen)
"""


def die(what: str, url: str, path: Path, steps: int) -> bool:
    """Whether it was killed."""
    done = subprocess.run(
        [sys.executable, "-c", DYING, what, url, str(path), str(steps)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode in (0, -signal.SIGKILL), done.stderr
    return done.returncode != 0


@pytest.mark.parametrize("steps", [0, 1, 3, 20])
def test_a_killed_backup_leaves_the_old_file_as_it_was(
    rig: Rig, saved: Path, redis_server: RedisServer, steps: int
) -> None:
    before = saved.read_bytes()
    rig.settle()

    assert die("backup", redis_server.url, saved, steps)

    assert saved.read_bytes() == before
    head = write(rig.client, [SITE], saved)
    assert head.sites[SITE].waiting == 0
    assert sorted(p.name for p in saved.parent.iterdir()) == ["backup", "public"]


@pytest.mark.parametrize("steps", [0, 2, 5])
def test_a_killed_restore_leaves_the_old_state_and_the_next_one_finishes(
    rig: Rig, saved: Path, redis_server: RedisServer, steps: int
) -> None:
    before = state(rig.client)
    rig.do(upsert("newer"))
    newer = state(rig.client)

    assert die("restore", redis_server.url, saved, steps)

    left = rig.client.keys("{demo}~*")
    assert len(left) > steps * 5
    assert {key: value for key, value in state(rig.client).items() if key not in left} == newer
    put_back(rig.client, saved, replace=True)
    assert state(rig.client) == before


def test_a_server_killed_in_the_swap_has_all_of_it_or_nothing(
    redis_binary: Path, tmp_path: Path
) -> None:
    """The script is one transaction in the log: cut in the middle, it is not there at all."""
    server = RedisServer(redis_binary, tmp_path)
    with server.client() as client:
        rig = Rig(client, tmp_path / "public")
        rig.do(*(upsert(f"p/{n}") for n in range(20)))
        write(client, [SITE], tmp_path / "backup")
        rig.do(upsert("newer"))
        newer = state(client)
        put_back(client, tmp_path / "backup", replace=True)
    server.kill()
    (log,) = (tmp_path / "appendonlydir").glob("*.incr.aof")
    swap = log.read_bytes().rindex(b"MULTI")
    os.truncate(log, (swap + log.stat().st_size) // 2)
    server.start()
    with server.client() as client:
        found = {k: v for k, v in state(client).items() if not k.startswith(b"{demo}~")}
        assert found == newer
        put_back(client, tmp_path / "backup", replace=True)
        assert Rig(client, tmp_path / "public").pages.lookup.count() == 20
    server.stop()


def test_a_backup_that_is_under_way_is_not_written_over(rig: Rig, saved: Path) -> None:
    def meanwhile(_: int) -> None:
        with pytest.raises(BackupError, match="under way"):
            write(rig.client, [SITE], saved)

    head = write(rig.client, [SITE], saved, meanwhile)

    assert isinstance(head, ArchiveHead)
    assert Keys(SITE).lease.encode() not in saved.read_bytes()
