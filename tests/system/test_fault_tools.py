"""The tools of tests/faults that need no privileges; the others: `python -m tests.faults.tools`."""

from __future__ import annotations

import os
import socket
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.tools.platter import Meta, Node, Platter
from tests.faults.tools.proxy import Proxy
from tests.faults.tools.syscalls import parse, points


@pytest.fixture
def echo() -> Iterator[tuple[str, list[bytes]]]:
    """The address of a server that answers each chunk with the same; what it has seen."""
    listener, seen = socket.create_server(("127.0.0.1", 0)), list[bytes]()

    def serve() -> None:
        while True:
            try:
                connection = listener.accept()[0]
            except OSError:
                return
            with connection:
                try:
                    while data := connection.recv(4096):
                        seen.append(data)
                        connection.sendall(data)
                except OSError:
                    continue

    thread = threading.Thread(target=serve)
    thread.start()
    yield f"127.0.0.1:{listener.getsockname()[1]}", seen
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()
    thread.join()


def said(proxy: Proxy, data: bytes) -> bytes | None:
    """What comes back for `data`; None if the connection was reset."""
    host, _, port = proxy.address.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=20) as connection:
        try:
            connection.sendall(data)
            return connection.recv(4096)
        except ConnectionResetError:
            return None


def test_a_proxy_loses_as_many_replies_or_requests_as_it_was_told(
    echo: tuple[str, list[bytes]],
) -> None:
    address, seen = echo
    with Proxy(address) as proxy:
        proxy.abort_on(b"answered", 1, "answer")
        proxy.abort_on(b"asked", 1, "request")
        words = (b"other", b"answered", b"answered", b"asked", b"asked")

        heard = [said(proxy, word) for word in words]

        assert heard == [b"other", None, b"answered", None, b"asked"]
        assert seen == [b"other", b"answered", b"answered", b"asked"]
        assert proxy.dropped == 2
        assert not proxy.pending()


def test_a_trace_tells_what_was_touched() -> None:
    log = (
        '7 openat(5</www>, "new", O_WRONLY) = 6</www/new>\n'
        "8 fsync(9</var/log> <unfinished ...>\n"
        "8 <... fsync resumed>) = 0\n"
        '7 renameat(5</www>, "new", 5</www>, "old") = -1 EIO (Input/output error) (INJECTED)\n'
        "7 fsync(5</www>) = 0\n"
        "7 +++ killed by SIGKILL +++\n"
    )

    calls = parse(log)

    named = [(each.name, each.path) for each in calls]
    assert named == [
        ("openat", "/www/new"),
        ("fsync", "/var/log"),
        ("renameat", "/www/old"),
        ("fsync", "/www"),
    ]
    assert points(calls, "/www") == [("openat", 1), ("renameat", 1), ("fsync", 2)]


def published(platter: Platter, name: bytes, data: bytes, *, sync: bool = True) -> Node:
    node = platter.make(Meta(stat.S_IFREG | 0o644, os.getuid(), os.getgid(), 0, 0, 0))
    platter.change((platter.root, b"temp", node))
    node.write(0, data)
    if sync:
        platter.sync(node)
    platter.change((platter.root, name, node), (platter.root, b"temp", None))
    return node


@pytest.mark.parametrize("journalled", [True, False])
def test_a_power_cut_leaves_what_was_synced(tmp_path: Path, journalled: bool) -> None:
    platter = Platter(tmp_path, journalled=journalled)
    published(platter, b"kept", b"old")
    published(platter, b"kept", b"new").write(0, b"unsynced")
    published(platter, b"empty", b"lost", sync=False)
    platter.sync(platter.root)
    published(platter, b"kept", b"newer")
    published(platter, b"unnamed", b"bytes")

    platter.store()

    found = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    newer = {"kept": b"newer", "empty": b"", "unnamed": b"bytes"}
    assert found == (newer if journalled else {"kept": b"new", "empty": b""})


def test_a_journal_keeps_the_order_of_names(tmp_path: Path) -> None:
    for tail in range(7):
        root = tmp_path / str(tail)
        root.mkdir()
        platter = Platter(root, journalled=True)
        for name in (b"first", b"second", b"third"):
            published(platter, name, name, sync=False)
        platter.store(tail / 6)
        names = sorted(path.name for path in root.iterdir())
        ready = ["first", "second", "third"][: tail // 2]
        assert names == sorted([*ready, *["temp"] * (tail % 2)])


def test_a_file_cut_short_and_extended_again_has_no_old_bytes(tmp_path: Path) -> None:
    platter = Platter(tmp_path, journalled=True)
    node = published(platter, b"file", b"secret bytes")
    platter.sync(node)
    node.truncate(0)
    node.write(6, b"end")
    platter.sync(node)

    platter.store()

    assert (tmp_path / "file").read_bytes() == b"\0" * 6 + b"end"
