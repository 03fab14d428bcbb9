"""Commands and Lua scripts over connections that are kept, and what their errors mean."""

from __future__ import annotations

import os
import re
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha1
from importlib.resources import files
from typing import Any

import hiredis
import redis
from redis import exceptions

from shared.errors import NoWritesError, StoreDownError, StoreError

_INCLUDE = re.compile(r"^-- include ([a-z_/]+)$", re.MULTILINE)
Argument = bytes | str | int | float
Command = tuple[Argument, ...]
_pack: Callable[[Command], bytes] = hiredis.pack_command  # type: ignore[assignment]  # wrong stub
# Prefixes of error replies that are about the state of the server, not about the command.
_UNWELL = ("MISCONF", "OOM", "READONLY", "NOREPLICAS", "CLUSTERDOWN", "BUSY", "LOADING", "NOPERM")
_MOVING = (exceptions.AskError, exceptions.TryAgainError, exceptions.ClusterDownError)
"""Errors of a cluster whose slots move, or lack a master: nothing was run."""
_kept: weakref.WeakKeyDictionary[redis.Redis, KeptConnections] = weakref.WeakKeyDictionary()
_lock = threading.Lock()


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
    if isinstance(error, _MOVING):
        return StoreDownError(f"the keys of this site are being moved: {error}")
    full = isinstance(error, exceptions.OutOfMemoryError | exceptions.ReadOnlyError)
    if full or str(error).startswith(_UNWELL):
        return NoWritesError(f"Redis refuses writes: {error}")
    return StoreError(f"Redis refused: {error}")


@lru_cache
def source(name: str) -> str:
    """Return the text of the Lua script `name`, with each `-- include PART` line resolved."""
    text = files("shared.store").joinpath(f"{name}.lua").read_text(encoding="utf-8")
    return _INCLUDE.sub(lambda found: source(found[1]), text)


_called: dict[Argument, str] = {}
"""Names of scripts by their digest."""


@lru_cache
def _digest(name: str) -> str:
    digest = sha1(source(name).encode(), usedforsecurity=False).hexdigest()
    _called[digest] = name
    return digest


def script_call(name: str, keys: Sequence[str], *args: Argument) -> Command:
    """Return the command that runs script `name`, if the server knows it."""
    return ("EVALSHA", _digest(name), len(keys), *keys, *args)


def script_load(call: Command) -> Command:
    """Return the command that loads the script of `call`, made by `script_call`. Both are to be
    sent together: another connection may lead to another server.
    """
    return ("SCRIPT", "LOAD", source(_called[call[1]]))


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


@dataclass(slots=True)
class RunningScript:
    """Script that was sent with its `follow_ups`: `reply` or `abandon` it, once."""

    scripts: Scripts
    connection: Any
    follow_ups: Sequence[PipelinedScript]
    call: Command

    def reply(self) -> Any:
        """Wait for the replies; return that of the script. Raises StoreDownError, StoreError."""
        return self.scripts.finish(self)

    def abandon(self) -> None:
        """Wait for no reply."""
        self.scripts.abandon(self)


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
        connection = self.send(*commands)
        return self.receive(connection, len(commands))

    def send(self, *commands: Command) -> Any:
        """Send `commands` and return the connection, from which the caller is to `receive` the
        replies. Raises as `exchange`.
        """
        connection = self._take()
        try:
            packed = b"".join(map(_pack, commands))
            connection.send_packed_command([packed], check_health=False)
        except BaseException:
            self.abandon(connection)
            raise
        return connection

    def receive(self, connection: Any, count: int) -> list[Any]:
        """Return the replies to `count` commands that were sent. Raises as `exchange`."""
        try:
            replies = [self._reply(connection) for _ in range(count)]
        except BaseException:
            self.abandon(connection)
            raise
        self._idle.append(connection)
        return replies

    def abandon(self, connection: Any) -> None:
        """Take back a connection: a reply that nobody reads must not be the next one's."""
        connection.disconnect()
        self._idle.append(connection)

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
    own: KeptConnections | None = getattr(client, "cluster_connections", None)
    if own is not None:
        return own
    with _lock:
        if client not in _kept:
            _kept[client] = KeptConnections(client.connection_pool)
        return _kept[client]


class Scripts:
    """Lua scripts of one client, loaded again when the server has lost its script cache."""

    def __init__(self, client: redis.Redis) -> None:
        self._connections = kept_connections(client)

    def __call__(self, name: str, keys: list[str], *args: Argument) -> Any:
        """Run script `name`. Raises StoreDownError or StoreError if it fails."""
        try:
            (reply,) = self._connections.exchange(script_call(name, keys, *args))
            if isinstance(reply, exceptions.NoScriptError):
                (reply,) = self._load_and_run(script_call(name, keys, *args))
            if isinstance(reply, Exception):
                raise reply
        except redis.RedisError as error:
            raise translated(error) from error
        return reply

    def followed(self, script: PipelinedScript, *commands: Command) -> list[Any]:
        """Run `script`, then `commands`; return all replies, errors of the server among them."""
        call = script_call(script.name, script.keys, *script.args)
        replies = self._connections.exchange(call, *commands)
        if isinstance(replies[0], exceptions.NoScriptError):
            replies = self._load_and_run(call, *commands)
        return replies

    def commit(self, script: PipelinedScript) -> tuple[Any, bool, str]:
        """Run `script`; of one server no replica confirms it: replica_wait.CommitScripts."""
        return self.run(script), True, ""

    def run(self, follow_up: PipelinedScript) -> Any:
        """Run `follow_up` in a round trip of its own and return its reply."""
        follow_up.reply = self(follow_up.name, follow_up.keys, *follow_up.args)
        follow_up.done = True
        return follow_up.reply

    def start(
        self, follow_ups: Sequence[PipelinedScript], name: str, keys: list[str], *args: Argument
    ) -> RunningScript:
        """Send script `name`, then `follow_ups`, which run even if `name` fails; the replies are
        waited for later. After a server has lost its script cache, `follow_ups` are not done.

        Raises StoreDownError.
        """
        commands = [script_call(each.name, each.keys, *each.args) for each in follow_ups]
        call = script_call(name, keys, *args)
        with answering():
            connection = self._connections.send(call, *commands)
        return RunningScript(self, connection, follow_ups, call)

    def finish(self, running: RunningScript) -> Any:
        """Wait for the replies of `running`; return that of the first script."""
        with answering():
            first, *others = self._connections.receive(
                running.connection, 1 + len(running.follow_ups)
            )
            for follow_up, reply in zip(running.follow_ups, others, strict=True):
                if not isinstance(reply, Exception):
                    follow_up.reply, follow_up.done = reply, True
            if isinstance(first, exceptions.NoScriptError):
                (first,) = self._load_and_run(running.call)
            if isinstance(first, Exception):
                raise first
        return first

    def abandon(self, running: RunningScript) -> None:
        """Wait for no reply of `running`."""
        self._connections.abandon(running.connection)

    def _load_and_run(self, call: Command, *commands: Command) -> list[Any]:
        for _ in range(2):  # a node of a cluster may redirect to one that does not know it either
            loaded, *replies = self._connections.exchange(script_load(call), call, *commands)
            if not isinstance(replies[0], exceptions.NoScriptError):
                break
        return [loaded, *replies[1:]] if isinstance(loaded, Exception) else replies
