"""Publishers that freeze with the lease and thaw when others have done their work; passes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
import redis

from shared.store.publishing.publish_batch import PASS_SHARDS
from tests.conftest import ROOT
from tests.integration.conftest import RedisServer, wait_until
from tests.integration.logs import silence
from tests.integration.rig import BASE, Rig

# A worker that freezes itself in the moment in which a file would take its name.
FREEZING = """
import os, signal, sys
from pathlib import Path
import redis
from tests.integration.rig import Rig

url, root, name, file = sys.argv[1:]

def freeze(event, given):
    if event == "os.rename" and given[1] == file:
        os.kill(os.getpid(), signal.SIGSTOP)

with redis.Redis.from_url(url) as client:
    pump = Rig(client, Path(root), name=name, shard_urls=2, robots="create").pump("frozen")
    sys.addaudithook(freeze)
    pump.run()
"""


def page(name: object, kind: str = "upsert", **members: Any) -> dict[str, Any]:
    return {"type": kind, "loc": f"{BASE}{name}"} | members


def notes(rig: Rig) -> list[dict[str, Any]]:
    """What each publish said it did."""
    entries: Any = rig.client.xrange(rig.keys.recent)
    return [json.loads(said[b"published"]) for _, said in entries if b"published" in said]


class Frozen:
    """A site whose publisher in another process freezes before it places `file`.

    `pump` is another worker's: one that has published this site before or, if it is to be `new`,
    one that will first sweep what the frozen one is about to place.
    """

    def __init__(
        self, server: RedisServer, client: redis.Redis, root: Path, file: str, *, new: bool = False
    ) -> None:
        name = file.partition(".")[0]
        self.rig = Rig(client, root / name, name=name, shard_urls=2, robots="create")
        self.pump = self.rig.pump("other")
        self.rig.send(*(page(number) for number in range(4)))
        with silence():
            (self.rig.pump("first") if new else self.pump).run()
        self.rig.send(page(1, lastmod="2026-01-01"), page(2, "delete"))
        self.process = subprocess.Popen(
            [sys.executable, "-c", FREEZING, server.url, self.rig.root, name, file], cwd=ROOT
        )

    def stopped(self) -> bool:
        return psutil.Process(self.process.pid).status() == psutil.STATUS_STOPPED

    def go_on(self) -> None:
        """Let it freeze and thaw until it has ended."""
        while self.process.poll() is None:
            os.kill(self.process.pid, signal.SIGCONT)


@pytest.fixture
def frozen(redis_server: RedisServer, store: redis.Redis, tmp_path: Path) -> Iterator[list[Frozen]]:
    sites = [
        Frozen(redis_server, store, tmp_path, "pages-1.xml"),
        Frozen(redis_server, store, tmp_path, "sitemap.xml"),
        Frozen(redis_server, store, tmp_path, "pages-2.xml", new=True),
    ]
    yield sites
    for site in sites:
        site.process.kill()
        site.process.wait()


def test_a_publisher_that_freezes_with_the_lease_is_replaced_and_cannot_undo_what_came_after(
    frozen: list[Frozen],
) -> None:
    """RELIABILITY F14, F12: the lease never expires here, as with a clock that was set back."""
    for site in frozen:
        wait_until(site.stopped, "the publisher to freeze")
        assert site.rig.client.persist(site.rig.keys.lease)
        site.rig.send(page(1, lastmod="2026-02-02"), page(3, "delete"))

    def taken_over() -> bool:
        with silence():
            for site in frozen:
                site.pump.run()
        return all(site.rig.quiet() for site in frozen)

    expected = {f"{BASE}0": None, f"{BASE}1": "2026-02-02"}
    wait_until(taken_over, "somebody else to publish", 20)
    for site in frozen:
        assert site.rig.listed() == expected
        assert not list(site.rig.audit().verify())
        site.go_on()
        site.rig.settle(consumer="other")
        assert site.rig.listed() == expected
        site.rig.check()


def test_changes_that_cancel_each_other_rewrite_nothing(store: redis.Redis, tmp_path: Path) -> None:
    rig = Rig(store, tmp_path)
    rig.do(page(1), page(2))
    before = rig.files()

    rig.send(page(1, "delete"), page(1), page(3), page(3, "delete"))
    rig.settle()

    assert rig.files() == before
    rig.check()


def test_many_files_are_published_in_passes_that_each_are_whole(
    store: redis.Redis, tmp_path: Path
) -> None:
    rig = Rig(store, tmp_path, shard_urls=1, index_shards=7)

    rig.do(*(page(number) for number in range(2 * PASS_SHARDS + 2)))

    sizes = [len(note["shards"]) for note in notes(rig)]
    assert sizes == [PASS_SHARDS, PASS_SHARDS, 2]
    rig.check()
