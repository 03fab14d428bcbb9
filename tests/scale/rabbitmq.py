"""RabbitMQ on loopback: with its files, its node name and its port mapper of its own."""

from __future__ import annotations

import shutil
import signal
import socket
from contextlib import suppress
from pathlib import Path

import pytest

from tests.faults.parts import Part, until
from tests.scale.deployed import environment
from tests.scale.servers import Servers, free_ports

PROGRAM = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")


class RabbitMq(Servers):
    """One broker, `url` in the spelling of Celery; nothing of it listens beyond loopback."""

    def __init__(self, home: Path) -> None:
        if not PROGRAM.exists():
            pytest.skip(f"no {PROGRAM}: apt-get install rabbitmq-server")
        home.mkdir(parents=True, exist_ok=True)
        self.port, nodes, mapper = free_ports(3)
        env = environment(home) | {
            "ERL_EPMD_ADDRESS": "127.0.0.1", "ERL_EPMD_PORT": str(mapper),
            "RABBITMQ_NODENAME": f"scale{self.port}@localhost", "RABBITMQ_PID_FILE": "/dev/null",
            "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1", "RABBITMQ_NODE_PORT": str(self.port),
            "RABBITMQ_DIST_PORT": str(nodes), "RABBITMQ_MNESIA_BASE": str(home / "data"),
            "RABBITMQ_LOG_BASE": str(home / "logs"), "RABBITMQ_CONFIG_FILE": str(home / "none"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(home / "plugins"),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS":
                "-kernel inet_dist_use_interface {127,0,0,1} +S 1:1 +sbwt none",
        }  # fmt: skip
        epmd = str(shutil.which("epmd"))
        self.url = f"amqp://guest:guest@127.0.0.1:{self.port}//"
        self._parts = [
            Part(
                "epmd",
                [epmd, "-port", str(mapper), "-address", "127.0.0.1"],
                env,
                home / "epmd.log",
            ),
            Part("rabbitmq", [str(PROGRAM)], env, home / "rabbitmq.log"),
        ]

    def start(self) -> None:
        """Start it, and wait until it takes connections."""
        for part in self._parts:
            part.wanted = True
            part.tend()
        until(self._listens, "RabbitMQ listens", 60)

    def kill(self) -> None:
        """End the broker and keep it down; `start` starts it again."""
        self._parts[1].end(signal.SIGKILL)

    def stop(self) -> None:
        """End all."""
        for part in reversed(self._parts):
            part.end(signal.SIGKILL)

    def _listens(self) -> bool:
        with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1) as line:
            line.sendall(b"AMQP\0\0\x09\1")
            return line.recv(1) != b""
        return False
