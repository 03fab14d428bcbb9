"""Worker registry: heartbeats of workers, and their wanted states."""

from __future__ import annotations

import os
import socket
import time
from functools import cache
from importlib import metadata
from typing import Any, Literal, NamedTuple, cast, get_args

import redis
from pydantic import BaseModel, ConfigDict, ValidationError

from shared.errors import Fault, InvalidError
from shared.store.client import answering
from shared.store.keys import EVERYWHERE

HEARTBEAT = EVERYWHERE + "worker:"
"""Prefix of the key of each live worker: a HeartbeatRecord, or `1` from old versions."""

HEARTBEAT_S = 10

QUIET_S = 7 * 24 * 3600
"""Maximum time a worker stays quiet (s), restarts included, so that none stays quiet unnoticed."""

STOP_S = 60
KEPT_S = 24 * 3600
"""Time for which a worker that has ended is listed (s)."""

NAMES = EVERYWHERE + "workers"
"""Workers with a heartbeat, each with the time of the last (s since 1970)."""
_WANTED = EVERYWHERE + "wanted:"

Wish = Literal["work", "quiet", "stop"]
State = Literal["working", "quiet", "stopping"]


def consumer_name() -> str:
    """Return the name of this process as a worker and a consumer of inboxes: the same after a
    restart, so that it finds the events it held before.
    """
    return os.environ.get("SITEMAPD_CONSUMER") or socket.gethostname()


@cache
def own_version() -> str:
    """Return the version of sitemapd that runs here."""
    try:
        return metadata.version("sitemapd")
    except metadata.PackageNotFoundError:
        return "unknown"  # run from a directory that is not installed


class BusyThread(BaseModel):
    """One thread at work: on which site, since when (s since 1970)."""

    model_config = ConfigDict(frozen=True, defer_build=True)

    site: str
    since: float


class HeartbeatRecord(BaseModel):
    """Heartbeat of a worker. Members that a newer version adds are not read (F21).

    `started` in seconds since 1970, `memory` in resident bytes (None where the system does not
    tell), `clock_offset` how many seconds the clock of Redis is ahead of the worker's; `events`
    settled and `files` written since it started.
    """

    model_config = ConfigDict(frozen=True, defer_build=True)

    version: str
    python: str
    host: str
    pid: int
    started: float
    state: State
    memory: int | None
    threads: int
    busy: tuple[BusyThread, ...]
    sites: tuple[str, ...]
    events: int
    files: int
    clock_offset: float | None


class RegisteredWorker(NamedTuple):
    """One worker: whether it lives, the seconds since its last heartbeat, and its wanted state.

    `beat` is None for old versions, and for a worker that has ended.
    """

    name: str
    alive: bool
    seen: float
    wanted: Wish
    beat: HeartbeatRecord | None

    def works_on(self, site: str) -> bool:
        """Return True if the worker takes new work for `site`; old versions work on all sites."""
        if self.beat is None:
            return self.alive
        return self.beat.state == "working" and site in self.beat.sites


class HeartbeatReply(NamedTuple):
    """Reply to a heartbeat: the wanted state, and Redis's clock minus the worker's (s)."""

    wanted: Wish
    clock_offset: float


class WorkerRegistry:
    """Registry of all workers on one Redis."""

    def __init__(self, client: redis.Redis) -> None:
        self._client = client

    def beat(self, name: str, beat: HeartbeatRecord) -> HeartbeatReply:
        """Store the heartbeat of the worker `name`, in one round trip. Raises StoreError."""
        begun = time.time()
        now = begun + (beat.clock_offset or 0.0)
        with answering():
            pipe = self._client.pipeline(transaction=False)
            pipe.time()
            pipe.set(HEARTBEAT + name, beat.model_dump_json(), ex=HEARTBEAT_S)
            pipe.zadd(NAMES, {name: now})
            pipe.zremrangebyscore(NAMES, "-inf", now - KEPT_S)
            pipe.expire(NAMES, KEPT_S)
            pipe.get(_WANTED + name)
            (seconds, micros), *_, wanted = pipe.execute()
        middle = (begun + time.time()) / 2
        return HeartbeatReply(_wish(wanted), seconds + micros / 1e6 - middle)

    def forget(self, name: str) -> None:
        """Delete the heartbeat of the worker `name`, which has ended."""
        with answering():
            self._client.delete(HEARTBEAT + name)

    def wanted(self, name: str) -> Wish:
        """Return the wanted state of the worker `name`."""
        with answering():
            return _wish(self._client.get(_WANTED + name))

    def want(self, name: str, wish: Wish) -> None:
        """Set the wanted state of the worker `name`: `quiet` for QUIET_S, `stop` for STOP_S."""
        with answering():
            if wish == "work":
                self._client.delete(_WANTED + name)
            else:
                self._client.set(_WANTED + name, wish, ex=QUIET_S if wish == "quiet" else STOP_S)

    def ask(self, name: str, wish: Wish) -> RegisteredWorker:
        """Set the wanted state of a worker and return its state before.

        Raises InvalidError if it is unknown, of an old version, or to be stopped and has ended.
        """
        found = self.list()
        worker = next((each for each in found if each.name == name), None)
        if worker is None:
            names = ", ".join(each.name for each in found) or "none"
            raise InvalidError(Fault(name, "worker", f"no such worker; there are: {names}"))
        if worker.alive and worker.beat is None:
            detail = "runs a version that takes no commands: stop it where it was started"
            raise InvalidError(Fault(name, "worker", detail))
        if not worker.alive and wish == "stop":
            raise InvalidError(Fault(name, "worker", "is gone already"))
        self.want(name, wish)
        return worker

    def list(self) -> list[RegisteredWorker]:
        """Return the workers that live or have ended within a day, by name."""
        with answering():
            known: Any = self._client.zrange(NAMES, 0, -1, withscores=True)
        last = {name.decode(errors="replace"): score for name, score in known}
        names = sorted(last)
        with answering():
            pipe = self._client.pipeline(transaction=False)
            pipe.time()
            for name in names:
                pipe.get(HEARTBEAT + name)
                pipe.pttl(HEARTBEAT + name)
                pipe.get(_WANTED + name)
            (seconds, _), *replies = pipe.execute()
        found = []
        for at, name in enumerate(names):
            stored, ttl, wanted = replies[3 * at : 3 * at + 3]
            seen = HEARTBEAT_S - ttl / 1000 if stored is not None else seconds - last[name]
            beat = None if stored is None else _beat(stored)
            found.append(
                RegisteredWorker(name, stored is not None, max(0.0, seen), _wish(wanted), beat)
            )
        return found


def _wish(stored: Any) -> Wish:
    text = (stored or b"work").decode(errors="replace")
    return cast("Wish", text) if text in get_args(Wish) else "work"


def _beat(stored: bytes) -> HeartbeatRecord | None:
    try:
        return HeartbeatRecord.model_validate_json(stored)
    except ValidationError:
        return None
