"""Memory of a reconcile does not grow with the site or the source."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import redis

from tests.integration.conftest import RedisServer

CHILD = """
import sys, tracemalloc
from pathlib import Path
import redis
from tests.integration.logs import silence
from tests.integration.reconcile.reconciled import record
from tests.integration.rig import Rig
from worker.reconcile.reconciler import Reconciler

url, root, size = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
first, second = range(size), range(size // 4, size + size // 4)
with redis.Redis.from_url(url) as client, silence():
    rig = Rig(client, root, shard_urls=500)
    reconciler = Reconciler(client, rig.name, rig.site, "test")
    pump = rig.pump()
    def pages(numbers):
        return (record(f"p/{n}", "2026-01-01") for n in numbers)
    reconciler.run(pages(first), on_remark=print, drain=pump.apply_all)
    pump.apply_all()
    tracemalloc.start()
    done = reconciler.run(pages(second), on_remark=print, drain=pump.apply_all)
    print(tracemalloc.get_traced_memory()[1])
    assert done.added == done.deleted == size // 4, done
"""


def test_memory_does_not_grow_with_the_pages(
    store: redis.Redis, redis_server: RedisServer, tmp_path: Path
) -> None:
    here = Path(__file__).resolve().parents[3]
    peaks = []
    for size in (1_000, 4_000):
        store.flushall()
        arguments = [redis_server.url, str(tmp_path), str(size)]
        ran = subprocess.run(
            [sys.executable, "-c", CHILD, *arguments],
            cwd=here, check=True, capture_output=True, text=True,
        )  # fmt: skip
        peaks.append(int(ran.stdout))

    assert peaks[1] < 1.5 * peaks[0]
