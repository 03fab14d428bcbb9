"""Redis as several servers: a master with replicas and sentinels, and a cluster of six."""

from __future__ import annotations

import os
import random
import shutil
import signal
import socket
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Self

import redis

from tests.faults.parts import Part, until
from tests.faults.tools.store import engine

SAFE = {
    "bind": "127.0.0.1", "save": "", "appendonly": "yes", "appendfsync": "always",
    "maxmemory-policy": "noeviction", "no-appendfsync-on-rewrite": "no", "logfile": "",
    "repl-diskless-sync-delay": "0",
}  # fmt: skip
MASTER = "sitemapd"
NOTICE_S = 1.0
"""Seconds after which a server that is silent counts as dead; five and more in production."""


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens at, below those that connections are given by the system; the bus
    of a cluster listens 10,000 above.
    """
    found: set[int] = set()
    while len(found) < count:
        port = random.randrange(15_000, 22_000)
        with socket.socket() as probe, socket.socket() as bus, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            bus.bind(("127.0.0.1", port + 10_000))
            found.add(port)
    return list(found)


def programs() -> list[Path]:
    """Each kind of server that this machine has: Valkey's, then Redis'."""
    debian = shutil.which("redis-server")
    return [engine(), *([Path(debian)] if debian else [])]


class Server(Part):
    """One server on loopback, at `port`."""

    def __init__(
        self, home: Path, name: str, port: int, settings: Mapping[str, str],
        *, program: Path, mode: Sequence[str] = (),
    ) -> None:  # fmt: skip
        self.port = port
        folder = home / name
        folder.mkdir(parents=True, exist_ok=True)
        config = folder / "server.conf"
        lines = {"port": str(port), "dir": str(folder), **settings}
        config.write_text(
            "".join(f"{key} {value or chr(34) * 2}\n" for key, value in lines.items())
        )
        command = [str(program), str(config), *mode]
        super().__init__(name, command, os.environ, home / f"{name}.log")

    def ask(self, *command: Any, password: str = "", user: str = "") -> Any:
        """Run one command over a connection of its own."""
        options: Any = {"password": password, "username": user or None} if password else {}
        with redis.Redis(port=self.port, socket_timeout=5, **options) as client:
            return client.execute_command(*command)

    def answers(self) -> bool:
        """Whether it answers."""
        with suppress(redis.RedisError):
            return bool(self.ask("PING"))
        return False


class Servers:
    """Some servers, which run within the block."""

    servers: list[Server]

    def __enter__(self) -> Self:
        with ExitStack() as failed:
            failed.callback(self.stop)
            self.start()
            failed.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start all, and wait until all answer."""
        for server in self.servers:
            server.wanted = True
            server.tend()
        until(lambda: all(each.answers() for each in self.servers), "all servers answer")

    def stop(self) -> None:
        """End all."""
        for server in self.servers:
            with suppress(ProcessLookupError):
                server.tell(signal.SIGCONT)
            server.end(signal.SIGKILL)


class Watched(Servers):
    """A master with two replicas, and three sentinels."""

    def __init__(
        self, home: Path, program: Path, settings: Mapping[str, str] | None = None
    ) -> None:
        ports = free_ports(6)
        given = SAFE | dict(settings or {})
        self.data = [
            Server(home, f"redis-{n}", port, given | self._follow(ports[0], n), program=program)
            for n, port in enumerate(ports[:3])
        ]
        self.sentinels = [
            Server(home, f"sentinel-{n}", port, self._watch(ports[0]), program=program,
                   mode=["--sentinel"])
            for n, port in enumerate(ports[3:])
        ]  # fmt: skip
        self.servers = [*self.data, *self.sentinels]
        places = ",".join(f"127.0.0.1:{port}" for port in ports[3:])
        self.url = f"redis+sentinel://{places}/{MASTER}/0"

    @staticmethod
    def _follow(master: int, number: int) -> dict[str, str]:
        return {"replicaof": f"127.0.0.1 {master}"} if number else {}

    @staticmethod
    def _watch(master: int) -> dict[str, str]:
        return {
            "bind": "127.0.0.1",
            "sentinel": f"monitor {MASTER} 127.0.0.1 {master} 2\n"
            f"sentinel down-after-milliseconds {MASTER} {NOTICE_S * 1000:.0f}\n"
            f"sentinel failover-timeout {MASTER} 5000",
        }

    def start(self) -> None:
        """Start all, and wait until each sentinel knows the others and both replicas."""
        self.servers = self.data
        super().start()
        until(lambda: online_replicas(self.data[0]) == 2, "two replicas follow")
        self.servers = [*self.data, *self.sentinels]
        super().start()  # a sentinel asks for replicas at once, and then every 10 s
        until(lambda: all(map(self._knows_all, self.sentinels)), "the sentinels know each other")

    @staticmethod
    def _knows_all(sentinel: Server) -> bool:
        found = sentinel.ask("SENTINEL", "MASTER", MASTER)
        if not isinstance(found, dict):
            found = dict(zip(found[::2], found[1::2], strict=True))
        known = {str(key if isinstance(key, str) else key.decode()): value
                 for key, value in found.items()}  # fmt: skip
        return int(known["num-slaves"]) == 2 and int(known["num-other-sentinels"]) == 2

    @property
    def master(self) -> Server:
        """The master that most sentinels name."""
        named = [self._named(each) for each in self.sentinels]
        port = max(named, key=named.count)
        return next(each for each in self.data if each.port == port)

    @staticmethod
    def _named(sentinel: Server) -> int:
        found = sentinel.ask("SENTINEL", "GET-MASTER-ADDR-BY-NAME", MASTER)
        return int(found[1])


class Cluster(Servers):
    """Three masters with a replica each."""

    def __init__(
        self, home: Path, program: Path, settings: Mapping[str, str] | None = None
    ) -> None:
        given = SAFE | dict(settings or {})
        given |= {
            "cluster-enabled": "yes", "cluster-config-file": "nodes.conf",
            "cluster-node-timeout": f"{NOTICE_S * 1000:.0f}",
        }  # fmt: skip
        self.servers = [
            Server(home, f"node-{n}", port, given, program=program)
            for n, port in enumerate(free_ports(6))
        ]
        self.url = "redis+cluster://" + ",".join(f"127.0.0.1:{s.port}" for s in self.servers[:3])

    def start(self) -> None:
        """Start all, give each master a third of the slots, and each replica a master."""
        super().start()
        masters, replicas = self.servers[:3], self.servers[3:]
        first = masters[0]
        bounds = [0, 5461, 10923, 16384]
        for n, master in enumerate(masters):
            master.ask("CLUSTER", "ADDSLOTSRANGE", bounds[n], bounds[n + 1] - 1)
            master.ask("CLUSTER", "SET-CONFIG-EPOCH", n + 1)
        for server in self.servers[1:]:
            first.ask("CLUSTER", "MEET", "127.0.0.1", server.port)
        until(lambda: all(self._knows(each) == 6 for each in self.servers), "all nodes are known")
        for master, replica in zip(masters, replicas, strict=True):
            replica.ask("CLUSTER", "REPLICATE", self.ident(master))
        until(lambda: all(map(self.serves, self.servers)), "all nodes serve")
        until(lambda: all(online_replicas(m) == 1 for m in masters), "each master is followed")

    @staticmethod
    def _knows(server: Server) -> int:
        found = _info(server)
        return int(found["cluster_known_nodes"])

    @staticmethod
    def serves(server: Server) -> bool:
        """Whether the node says that all slots are served."""
        try:
            return _info(server)["cluster_state"] == "ok"
        except redis.RedisError:
            return False

    @staticmethod
    def ident(server: Server) -> str:
        """The id of the node."""
        found = server.ask("CLUSTER", "MYID")
        return found.decode() if isinstance(found, bytes) else str(found)

    def slots(self) -> list[tuple[int, int, int]]:
        """Each range of slots with the port of its master, as a living node knows it."""
        for server in self.servers:
            with suppress(redis.RedisError, OSError):
                found = server.ask("CLUSTER", "SLOTS")
                return [(first, last, int(master[1])) for first, last, master, *_ in found]
        raise LookupError("no node answers")

    def owner(self, slot: int) -> Server:
        """The master that serves `slot`."""
        port = next(p for first, last, p in self.slots() if first <= slot <= last)
        return next(each for each in self.servers if each.port == port)

    def move(self, slot: int, target: Server, between: Callable[[], None] = lambda: None) -> None:
        """Move one slot to another master key by key, as `redis-cli --cluster reshard` does; call
        `between` when half of its keys are moved.
        """
        source = self.owner(slot)
        ids = self.ident(source), self.ident(target)
        target.ask("CLUSTER", "SETSLOT", slot, "IMPORTING", ids[0])
        source.ask("CLUSTER", "SETSLOT", slot, "MIGRATING", ids[1])
        names = source.ask("CLUSTER", "GETKEYSINSLOT", slot, 10_000)
        for some in (names[: len(names) // 2], names[len(names) // 2 :]):
            if some:
                source.ask("MIGRATE", "127.0.0.1", target.port, "", 0, 5000, "KEYS", *some)
            if some is not names:
                between()
                between = lambda: None  # noqa: E731
        for server in (target, source, *self.servers[:3]):
            with suppress(redis.ResponseError):  # a replica refuses
                server.ask("CLUSTER", "SETSLOT", slot, "NODE", ids[1])


def _info(server: Server) -> dict[str, str]:
    found = server.ask("CLUSTER INFO")
    if isinstance(found, dict):
        return found
    return dict(line.split(":", 1) for line in found.decode().split("\r\n") if ":" in line)


def online_replicas(server: Server) -> int:
    """How many replicas follow, and would have all that they confirm after a SIGKILL."""
    found = server.ask("INFO", "replication")
    ports = [int(found[f"slave{n}"]["port"]) for n in range(int(found["connected_slaves"]))]
    return sum(map(is_online, ports))


def is_online(port: int) -> bool:
    """Whether it is a replica that has its copy. For Valkey it is online a second before it loads
    that; and the append-only file is that of before until it has been rewritten.
    """
    with redis.Redis(port=port, socket_timeout=5) as replica:
        found: Any = {**replica.info("replication"), **replica.info("persistence")}
    rewrites = found["aof_rewrite_in_progress"] or found["aof_rewrite_scheduled"]
    return bool(found.get("master_link_status") == "up" and not rewrites)
