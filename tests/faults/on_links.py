"""F18, F19: the way to Redis breaks, hangs or is slow."""

from __future__ import annotations

import time
from contextlib import ExitStack
from pathlib import Path

from tests.faults.deployment import Options
from tests.faults.parts import until
from tests.faults.run import Case, Run
from tests.faults.tools.network import Network
from tests.faults.tools.proxy import Proxy


def _prepare(directory: Path, stack: ExitStack) -> Options:
    directory.mkdir()
    proxy = stack.enter_context(Proxy(str(directory / "redis.sock")))
    return Options(redis=f"redis://{proxy.address}", tool=proxy)


def _lost_replies(run: Run) -> None:
    """Requests done whose answer never comes: of scripts, reads and Celery's messages."""
    proxy: Proxy = run.system.options.tool
    for pattern in (b"EVALSHA", b"XREADGROUP", b"HGETALL", b"BRPOP", b"LPUSH"):
        proxy.abort_on(pattern, times=10, where="answer")
        proxy.abort_on(pattern, times=10, where="request")
        run.progress(200)
        until(lambda: not proxy.pending(), "all connections were broken", 60)
    run.injected = proxy.dropped


def _half_open(run: Run) -> None:
    """Everything swallowed for 3 s while connections stay: answers come in time all the same."""
    proxy: Proxy = run.system.options.tool
    for _ in range(5):
        run.progress(run.chance.randrange(20, 100))
        proxy.drop(True)
        time.sleep(3)
        proxy.drop(False)
        run.injected += 1
    run.notes.append(f"slowest answer {run.longest:.1f} s")
    run.expect(run.longest <= 3, f"an answer took {run.longest:.1f} s")


def _slow(run: Run) -> None:
    """Each packet 50 ms late."""
    proxy: Proxy = run.system.options.tool
    proxy.delay(0.05)
    run.injected += 1
    run.progress(300)


def _apart(_directory: Path, stack: ExitStack) -> Options:
    """Redis on one host; workers, web and schedule on another."""
    network = stack.enter_context(Network())
    store, app = network.host("store"), network.host("app")

    def before(part: str) -> list[str]:
        host = store if part == "redis" else app
        return ["nsenter", f"--net=/run/netns/{host.namespace}"]

    settings = {"port": "6379", "bind": store.address, "protected-mode": "no"}
    return Options(
        redis=f"redis://{store.address}:6379", address=app.address,
        before=before, store=settings, tool=network,
    )  # fmt: skip


def _partition(run: Run) -> None:
    """Nothing passes for 5 s, and neither side is told."""
    network: Network = run.system.options.tool
    for _ in range(5):
        run.progress(run.chance.randrange(20, 100))
        network.cut("app", "store")
        time.sleep(5)
        network.heal("app", "store")
        run.injected += 1
    run.notes.append(f"slowest answer {run.longest:.1f} s")
    run.expect(run.longest <= 3, f"an answer took {run.longest:.1f} s")


def _lossy(run: Run) -> None:
    """Three of ten packets are lost."""
    network: Network = run.system.options.tool
    network.lose("app", "store", 30)
    run.injected += 1
    run.progress(100, 180)
    network.heal("app", "store")


CASES = [
    Case("F18", "replies of Redis lost", _lost_replies, _prepare),
    Case("F18", "connections to Redis half open", _half_open, _prepare),
    Case("F19", "a slow way to Redis", _slow, _prepare),
    Case("F19", "a network that parts app and Redis", _partition, _apart),
    Case("F19", "30 % of the packets lost", _lossy, _apart),
]
