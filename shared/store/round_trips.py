"""Reads that share round trips: any number of them together take as many as the longest alone.

A Reading is a generator: it yields the commands of one round trip, is sent their replies as Redis
gives them, and returns its value. `read` runs one, `gathered` makes one of many.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from typing import Any, TypeVar

import redis
from redis.exceptions import NoScriptError

from shared.store.client import Command, answering, kept_connections, script_load

_T = TypeVar("_T")
Reading = Generator[Sequence[Command], Sequence[Any], _T]

_NOTHING_THERE = ("no such key", "NOGROUP")
"""Error replies about an inbox that has no event yet, or that no worker has ever read: None."""


def read(client: redis.Redis, reading: Reading[_T]) -> _T:
    """Return the value of `reading`. Raises StoreError."""
    try:
        commands = next(reading)
        while True:
            once = list(dict.fromkeys(commands))  # what several parts ask is asked once
            with answering():
                replies = dict(zip(once, _exchanged(client, once), strict=True))
                found = [_reply(replies[command]) for command in commands]
            commands = reading.send(found)
    except StopIteration as done:
        value: _T = done.value
        return value


def _exchanged(client: redis.Redis, commands: Sequence[Command]) -> list[Any]:
    """Return the replies; scripts that the server does not know are loaded, and run then."""
    connections = kept_connections(client)
    replies = connections.exchange(*commands) if commands else []
    for each in (False, True):  # once is enough for a server, but not for the nodes of a cluster
        lost = [at for at, reply in enumerate(replies) if isinstance(reply, NoScriptError)]
        known, sent = set[object](), list[tuple[int, Command]]()
        for at in lost:
            if each or commands[at][1] not in known:
                known.add(commands[at][1])
                sent.append((-1, script_load(commands[at])))
            sent.append((at, commands[at]))
        again = connections.exchange(*(command for _, command in sent)) if sent else []
        for (at, _), reply in zip(sent, again, strict=True):
            if at >= 0:
                replies[at] = reply
    return replies


def gathered(readings: Iterable[Reading[_T]]) -> Reading[list[_T]]:
    """Return a Reading of the values of `readings`, in order; each round trip is one for all."""
    values: dict[int, _T] = {}
    going = list[tuple[int, Reading[_T], Sequence[Command]]]()

    def step(at: int, reading: Reading[_T], replies: Sequence[Any] | None) -> None:
        try:
            going.append((at, reading, next(reading) if replies is None else reading.send(replies)))
        except StopIteration as done:
            values[at] = done.value

    for at, reading in enumerate(readings):
        step(at, reading, None)
    while going:
        now, going = going, []
        replies = yield [command for *_, commands in now for command in commands]
        first = 0
        for at, reading, commands in now:
            step(at, reading, replies[first : first + len(commands)])
            first += len(commands)
    return [values[at] for at in range(len(values))]


def pairs(reply: Any) -> dict[Any, Any]:
    """Return a reply of names and values, or members and scores, as a mapping: flat in RESP2, a map
    or pairs in RESP3.
    """
    if isinstance(reply, dict) or (reply and isinstance(reply[0], list)):
        return dict(reply)
    return dict(zip(reply[::2], reply[1::2], strict=True))


def _reply(reply: Any) -> Any:
    if isinstance(reply, Exception):
        if str(reply).startswith(_NOTHING_THERE):
            return None
        raise reply
    return reply
