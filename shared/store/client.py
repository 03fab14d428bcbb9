"""Connection to Redis: clients with bounded waits, and Lua scripts."""

from __future__ import annotations

import os
import re
import threading
import weakref
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha1
from importlib.resources import files
from typing import Any

import redis
from redis import exceptions
from redis.backoff import NoBackoff
from redis.retry import Retry

from shared.errors import NoWritesError, StoreDownError, StoreError

_INCLUDE = re.compile(r"^-- include ([a-z_/]+)$", re.MULTILINE)
Argument = bytes | str | int | float
Command = tuple[Argument, ...]
# Prefixes of error replies that are about the state of the server, not about the command.
_UNWELL = ("MISCONF", "OOM", "READONLY", "NOREPLICAS", "CLUSTERDOWN", "BUSY", "LOADING", "NOPERM")


_kept: weakref.WeakKeyDictionary[redis.Redis, KeptConnections] = weakref.WeakKeyDictionary()
_lock = threading.Lock()


def connect(url: str, timeout: float) -> redis.Redis:
    """Return a client that gives up after `timeout` seconds and never retries a command.

    redis-py's own default hangs for a minute on a frozen server, and a repeated XADD leaves two
    entries (DESIGN 9).
    """
    client: redis.Redis = redis.Redis.from_url(
        url,
        socket_timeout=timeout,
        socket_connect_timeout=min(timeout, 1.0),
        retry=Retry(NoBackoff(), 0),
        protocol=2,
    )
    # In a garbage cycle a socket may be collected before its connection, with a ResourceWarning.
    weakref.finalize(client, client.connection_pool.disconnect).atexit = False
    return client


@contextmanager
def answering() -> Iterator[None]:
    """Translate errors of redis-py, as `translated` does."""
    try:
        yield
    except redis.RedisError as error:
        raise translated(error) from error


def translated(error: redis.RedisError) -> StoreError:
    """Return the error to raise for one of redis-py: StoreDownError where a retry may succeed, else
    StoreError.
    """
    if isinstance(error, exceptions.ConnectionError | exceptions.TimeoutError):
        return StoreDownError(f"Redis does not answer: {error}")
    full = isinstance(error, exceptions.OutOfMemoryError | exceptions.ReadOnlyError)
    if full or str(error).startswith(_UNWELL):
        return NoWritesError(f"Redis refuses writes: {error}")
    return StoreError(f"Redis refused: {error}")


@lru_cache
def source(name: str) -> str:
    """Return the text of the Lua script `name`, with each `-- include PART` line resolved."""
    text = files("shared.store").joinpath(f"{name}.lua").read_text(encoding="utf-8")
    return _INCLUDE.sub(lambda found: source(found[1]), text)


@dataclass(slots=True)
class PipelinedScript:
    """Script sent in the same round trip as another: one flush of the append-only file for both.

    `reply` is its return value once it is `done`.
    """

    name: str
    keys: list[str]
    args: tuple[Argument, ...]
    done: bool = False
    reply: Any = None


class KeptConnections:
    """Connections from the pool of a client, as many as ever were in use at once.

    They are never given back: the pool closes them with all others when the client ends. redis-py 8
    takes 30 µs of Python for each command beside the command itself (a lock, a pool, hooks for
    metrics), and an event has seven.
    """

    def __init__(self, pool: redis.ConnectionPool) -> None:
        self._pool, self._process = pool, os.getpid()
        self._idle: deque[Any] = deque()  # append and pop are atomic: no lock

    def exchange(self, *commands: Command) -> list[Any]:
        """Send `commands` at once and return their replies, errors of the server among them.

        Raises redis.ConnectionError or redis.TimeoutError; then any of the commands may have been
        run. Nothing is sent twice.
        """
        connection = self._take()
        try:
            connection.send_packed_command(connection.pack_commands(commands), check_health=False)
            replies = [self._reply(connection) for _ in commands]
        except BaseException:
            connection.disconnect()  # a reply that nobody reads must not be the next one's
            raise
        finally:
            self._idle.append(connection)
        return replies

    @staticmethod
    def _reply(connection: Any) -> Any:
        try:
            return connection.read_response()
        except exceptions.ResponseError as error:
            return error

    def _take(self) -> Any:
        if self._process != os.getpid():  # a fork shares sockets with its parent
            self._idle, self._process = deque(), os.getpid()
        try:
            connection = self._idle.pop()
        except IndexError:
            return self._pool.get_connection()
        try:
            # After a restart of the server the end of the stream is there to read.
            stale = connection.can_read()
        except (exceptions.ConnectionError, exceptions.TimeoutError, OSError):
            stale = True
        if stale:
            connection.disconnect()
        return connection


def kept_connections(client: redis.Redis) -> KeptConnections:
    """Return the connections shared by all scripts of `client`."""
    with _lock:
        if client not in _kept:
            _kept[client] = KeptConnections(client.connection_pool)
        return _kept[client]


class Scripts:
    """Lua scripts of one client, loaded again when the server has lost its script cache."""

    def __init__(self, client: redis.Redis) -> None:
        self._client, self._connections = client, kept_connections(client)
        self._digests: dict[str, str] = {}

    def __call__(self, name: str, keys: list[str], *args: Argument) -> Any:
        """Run script `name`. Raises StoreDownError or StoreError if it fails."""
        with answering():
            (reply,) = self._connections.exchange(self._command(name, keys, args))
            if isinstance(reply, exceptions.NoScriptError):
                reply = self._load_and_run(name, keys, args)
            if isinstance(reply, Exception):
                raise reply
        return reply

    def run(self, follow_up: PipelinedScript) -> Any:
        """Run `follow_up` in a round trip of its own and return its reply."""
        follow_up.reply = self(follow_up.name, follow_up.keys, *follow_up.args)
        follow_up.done = True
        return follow_up.reply

    def along(self, follow_up: PipelinedScript, name: str, keys: list[str], *args: Argument) -> Any:
        """Run script `name`, then `follow_up` even if `name` failed; return the reply of `name`.

        After a server has lost its script cache, `follow_up` is not done.
        """
        with answering():
            first, second = self._connections.exchange(
                self._command(name, keys, args),
                self._command(follow_up.name, follow_up.keys, follow_up.args),
            )
            if not isinstance(second, Exception):
                follow_up.reply, follow_up.done = second, True
            if isinstance(first, exceptions.NoScriptError):
                first = self._load_and_run(name, keys, args)
            if isinstance(first, Exception):
                raise first
        return first

    def _command(self, name: str, keys: list[str], args: tuple[Argument, ...]) -> Command:
        digest = self._digests.get(name)
        if digest is None:
            digest = self._digests[name] = sha1(
                source(name).encode(), usedforsecurity=False
            ).hexdigest()
        return ("EVALSHA", digest, len(keys), *keys, *args)

    def _load_and_run(self, name: str, keys: list[str], args: tuple[Argument, ...]) -> Any:
        self._client.script_load(source(name))
        (reply,) = self._connections.exchange(self._command(name, keys, args))
        return reply
