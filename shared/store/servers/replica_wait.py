"""Scripts whose writes replicas confirm: an accepted event, before its sender is told; a commit of
published files, before they are marked as those of that commit.

A failover to a replica that lacks a commit repeats it, from the patches or events that are there
again. Files that were marked by a lost commit would be files of a newer state, which nothing may
overwrite (RELIABILITY F22); so would those of an identity that was lost, and replicas have it
before the first file is written. Two things keep publishing from stopping there: what no replica
confirmed is not marked; and a marker names the replication history of its master (INFO, replid), so
that a promoted server, which names the one it continues, is told from an old copy of the state. A
replica that confirmed may follow the promoted one a moment later: the first alone does not suffice.
"""

from __future__ import annotations

import re
import weakref
from typing import Any, NamedTuple

import redis

from shared.errors import StoreDownError
from shared.store.client import Command, PipelinedScript, Scripts, answering, kept_connections
from shared.store.server_settings import ServerVersion


class ReplicaWait(NamedTuple):
    """Number of replicas that must have a write, and the milliseconds that are waited for them."""

    replicas: int
    timeout_ms: int


COMMIT_MS = 20
"""Milliseconds that a commit waits: with replicas that are further behind, the files stay marked as
those of the last commit that was confirmed.
"""
IDENTITY_MS = 500
"""Milliseconds that the first publish of a state waits for replicas to have its identity."""
_INFO = ("INFO", "replication")
_commits = weakref.WeakKeyDictionary[redis.Redis, int]()


def of_commits(client: redis.Redis, replicas: int) -> None:
    """Have commits of `client` wait for so many replicas; for one, where none must confirm them."""
    _commits[client] = replicas


class CommitScripts:
    """Scripts of one client that commit, each followed by WAIT: replicas have it in memory, and one
    of them is the next master. Its disk is not waited for, as a fast one flushes once a second.
    """

    def __init__(self, client: redis.Redis, wait: ReplicaWait) -> None:
        self._scripts, self._wait = Scripts(client), wait

    def commit(self, script: PipelinedScript) -> tuple[Any, bool, str]:
        """Return the reply of `script`, which writes; False if too few replicas confirmed that in
        time; and the history of the master. Raises StoreDownError, StoreError.
        """
        with answering():
            reply, held, info = self._scripts.followed(script, ("WAIT", *self._wait), _INFO)
            if isinstance(reply, redis.RedisError):
                raise reply
        confirmed = isinstance(held, int) and held >= self._wait.replicas
        return reply, confirmed, histories_in(info)[0]


def commit_scripts(client: redis.Redis) -> CommitScripts | Scripts:
    """Return the scripts of `client` that commit."""
    if client not in _commits:
        return Scripts(client)
    return CommitScripts(client, ReplicaWait(max(1, _commits[client]), COMMIT_MS))


def confirm(client: redis.Redis, write: Command) -> None:
    """Run `write` and wait until replicas have it; of a server without replicas, do nothing.

    Raises StoreDownError if fewer confirm than must (`wait_replicas`), StoreError.
    """
    if client not in _commits:
        return
    replicas = _commits[client]
    with answering():
        reply, held = kept_connections(client).exchange(
            write, ("WAIT", max(1, replicas), IDENTITY_MS)
        )
        for each in (reply, held):
            if isinstance(each, redis.RedisError):
                raise each
    if held < replicas:
        raise _unconfirmed(held, replicas)


def _unconfirmed(held: int, replicas: int) -> StoreDownError:
    return StoreDownError(f"{held} of {replicas} replicas (wait_replicas) confirmed the write")


def histories(client: redis.Redis, key: str) -> tuple[str, str]:
    """Return the history of the master that has `key`, and the one that it continues since it was
    promoted, without the last writes of its former master. Empty where no replica can become the
    master. Raises StoreDownError, StoreError.
    """
    if client not in _commits:
        return "", ""
    with answering():
        _, info = kept_connections(client).exchange(("EXISTS", key), _INFO)
    return histories_in(info)


def histories_in(info: Any) -> tuple[str, str]:
    """Return the history of a server and the one that it continues, by its INFO replication."""
    found = dict(re.findall(rb"(master_replid2?):([0-9a-f]{40})", bytes(info or b"")))
    now, former = (found.get(name, b"").decode() for name in (b"master_replid", b"master_replid2"))
    return now, former if former.strip("0") else ""


class ConfirmedScripts:
    """Scripts of one client, each followed by WAITAOF: replicas have the write in their append-only
    files. A server before 7.2 knows only WAIT: they have it in memory.
    """

    def __init__(self, client: redis.Redis, wait: ReplicaWait) -> None:
        self._client, self._scripts, self._wait = client, Scripts(client), wait
        self._knows_aof: bool | None = None

    def run(self, script: PipelinedScript, touch: Command) -> Any:
        """Run `script`, then `touch`, in one round trip with the wait; return the script's reply.

        `touch` writes what is there already: WAIT asks for what its own connection wrote, and a
        script that finds its work done writes nothing. Raises StoreDownError if too few replicas
        confirm (the write may be lost, or not), StoreError.
        """
        with answering():
            if self._knows_aof is None:
                self._knows_aof = knows_aof(self._client)
            reply, _, confirmed = self._scripts.followed(script, touch, self._command)
            for each in (reply, confirmed):
                if isinstance(each, redis.RedisError):
                    raise each
        held = int(confirmed[1] if self._knows_aof else confirmed)
        if held < self._wait.replicas:
            raise _unconfirmed(held, self._wait.replicas)
        return reply

    @property
    def _command(self) -> Command:
        replicas, timeout = self._wait
        return ("WAITAOF", 0, replicas, timeout) if self._knows_aof else ("WAIT", replicas, timeout)


def knows_aof(client: redis.Redis) -> bool:
    """Return True if the server has WAITAOF. Raises redis.RedisError."""
    info: Any = client.info("server")
    server = ServerVersion.of(info)
    return server.program == "valkey" or server.since(7, 2)
