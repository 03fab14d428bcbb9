"""Clients that stall hold up nobody else and lose their connection (RELIABILITY T34)."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import pytest

from tests.system.driver import System, wait_until

LARGE = 30_000_000
ROUNDS = 3
SPARE = 20  # descriptors and threads of pools, which grow to their size; fewer than the clients
POST = b"POST /v1/sites/demo/events HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
# RFC 9113: the preface, SETTINGS, HEADERS (indexed :method POST, :scheme http, :path /; END_HEADERS
# without END_STREAM), and the beginning of a body.
H2 = (
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
    b"\0\0\0\4\0\0\0\0\0"
    b"\0\0\3\1\4\0\0\0\1\x83\x86\x84"
    b"\0\0\3\0\0\0\0\0\1abc"
)


class Stall(NamedTuple):
    """What a client sends before it does nothing more, and how many do so."""

    sent: bytes
    clients: int = 40


STALLS = {
    "half a body": Stall(POST + b"Content-Length: 100\r\n\r\nabc", 200),
    "no body after Expect": Stall(POST + b"Expect: 100-continue\r\nContent-Length: 9\r\n\r\n"),
    "chunks without an end": Stall(POST + b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"),
    "a body that is too large": Stall(POST + b"Content-Length: 99999999\r\n\r\nabc"),
    "half a head": Stall(POST + b"X-Slow: "),
    "nothing": Stall(b""),
    "nothing more after an answer": Stall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"),
    "a large file not read": Stall(b"GET /large.bin HTTP/1.1\r\nHost: x\r\n\r\n"),
    "requests without end, answers not read": Stall(
        b"GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n" * 300
    ),
    "half a body over HTTP/2": Stall(H2),
    "a login not finished": Stall(
        b"POST /admin/login HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 50\r\n\r\nuser="
    ),
}


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    system = System(tmp_path_factory.mktemp("stalled") / "home")
    system.start()
    with (system.root / "large.bin").open("wb") as file:
        file.truncate(LARGE)
    yield system
    assert system.stop() == 0


def stalled(system: System, stall: Stall) -> socket.socket:
    host, _, port = urlsplit(system.address).netloc.rpartition(":")
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.settimeout(10)
    client.connect((host, int(port)))
    client.setblocking(False)
    rest = memoryview(stall.sent)
    try:
        while rest:
            rest = rest[client.send(rest) :]
    except (BlockingIOError, ConnectionError):
        pass  # it does not take more, as it is not read either
    return client


def server(system: System) -> int:
    """The process that serves; its parent starts it again when it dies."""
    parent = system.pid("web")
    (child,) = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    return int(child)


def held(pid: int) -> tuple[int, int]:
    """Descriptors and threads of a process."""
    return len(os.listdir(f"/proc/{pid}/fd")), len(os.listdir(f"/proc/{pid}/task"))


def answers(system: System) -> tuple[int, int, int]:
    event = b'{"type": "upsert", "loc": "%s/a"}' % system.base.encode()
    return system.get("/healthz")[0], system.get("/readyz")[0], system.post(event)[0]


def test_while_clients_stall_others_are_answered_and_then_the_stalled_ones_go(
    system: System,
) -> None:
    """All kinds at once: what one of them holds on to would be seen in the next round."""
    assert answers(system) == (200, 200, 202)
    pid = server(system)
    idle, threads = held(pid)
    for _ in range(ROUNDS):
        with ExitStack() as stack:
            for stall in STALLS.values():
                for _ in range(stall.clients):
                    stack.enter_context(closing(stalled(system, stall)))
            assert answers(system) == (200, 200, 202)
            wait_until(lambda: held(pid)[0] <= idle + SPARE, "the server has closed them")
            assert answers(system) == (200, 200, 202)
    assert server(system) == pid, "the server died"
    assert held(pid)[1] <= threads + SPARE
