"""What the tools between processes must be seen to do; see __main__."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from tests.faults.tools.network import Network
from tests.faults.tools.proxy import Proxy
from tests.faults.tools.store import Store
from tests.faults.tools.wakeups import QUEUE, Wakeups

_LOWER = [QUEUE, *(f"{QUEUE}\x06\x16{step}" for step in (3, 6, 9))]

_ANSWER = """
import socket
listener = socket.create_server(("0.0.0.0", 9000))
while True:
    connection, _ = listener.accept()
    connection.sendall(bytes(20000))
    connection.close()
"""

_FETCH = """
import socket, sys, time
begin = time.monotonic()
try:
    connection = socket.create_connection((sys.argv[1], 9000), timeout=2)
    while connection.recv(65536):
        pass
    print(time.monotonic() - begin)
except OSError:
    print(-1)
"""


def until(holds: Callable[[], object], what: str) -> None:
    """Return when it holds; an AssertionError after 10 s."""
    deadline = time.monotonic() + 10
    while not holds():
        assert time.monotonic() < deadline, what
        time.sleep(0.01)


def proxy(directory: Path) -> str:
    """A reply is lost after the server did its work, a request before; all is swallowed; healed."""
    with Store(directory) as store, Proxy(store.socket) as between:
        client = redis.Redis.from_url(
            f"redis://{between.address}", socket_timeout=1, retry=Retry(NoBackoff(), 0)
        )
        between.abort_on(b"INCR", 2, "answer")
        between.abort_on(b"DECR", 1, "request")
        broken = [_broken(lambda: client.incr("n")) for _ in range(3)]
        broken += [_broken(lambda: client.decr("n")) for _ in range(2)]
        assert broken == [True, True, False, True, False], broken
        assert int(store.client.get("n") or 0) == 2
        assert (between.dropped, between.pending()) == (3, 0)
        between.drop(True)
        assert _broken(client.ping)
        assert between.swallowed
        between.cut()
        assert _broken(client.ping)
        between.heal()
        assert client.ping()
        client.close()
    return "2 replies and 1 request lost, swallowed, cut, healed"


def _broken(work: Callable[[], object]) -> bool:
    try:
        work()
    except redis.RedisError:
        return True
    return False


def wakeups(directory: Path) -> str:
    """Of 200 messages a worker that waits gets 0, 400, or 200 late ones."""
    found = {}
    with Store(directory) as store:
        for mode in ("drop", "double", "delay"):
            got = 0
            with Wakeups(store.socket, mode, seconds=1) as fate:
                began = time.monotonic()
                for _ in range(200):
                    store.client.lpush(QUEUE, "message")
                while store.client.brpop(_LOWER, timeout=2):
                    if mode == "delay" and not got:
                        assert time.monotonic() - began > 0.9
                    got += 1
                assert (fate.seen, fate.changed) == (200, 200)
            found[mode] = got
    assert found == {"drop": 0, "double": 400, "delay": 200}, found
    return f"of 200 messages: {found}"


def network(_: Path) -> str:
    """Two hosts are cut off from each other, not from a third; then lossy, slow, healed."""
    with Network() as net:
        one, two, third = (net.host(name) for name in ("one", "two", "third"))
        server = two.popen([sys.executable, "-c", _ANSWER])

        def fetch(name: str) -> float:
            argv = [sys.executable, "-c", _FETCH, two.address]
            return float(net.host(name).popen(argv, stdout=subprocess.PIPE).communicate()[0])

        try:
            until(lambda: fetch("one") >= 0, "the server answers")
            net.cut("one", "two")
            assert fetch("one") < 0
            assert fetch(third.name) >= 0
            net.lose("one", "two", 30)
            lossy = fetch(one.name)
            net.heal("one", "two")
            net.slow("one", "two", "128kbit")
            slow, quick = fetch("one"), fetch("third")
            assert slow > 0.8 > quick, (slow, quick)
            net.heal("one", "two")
            assert 0 <= fetch("one") < 0.8
        finally:
            server.kill()
            server.wait()
    return (
        f"cut; 30 % loss {lossy:.2f} s; 20 kB at 128 kbit/s {slow:.2f} s, beside it {quick:.2f} s"
    )
