"""Check of the rights of the Redis user: all that are needed, and no more than its role has."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import urlsplit

import redis
from redis.exceptions import NoPermissionError

from deploy.doctor.runner import Case, DoctorCheck, DoctorFinding, fail, ok, warn
from deploy.host_files.redis_users import user_of
from shared.config import redis_address
from shared.store.client import Command, answering
from shared.store.key_rights import ROLES, Role, patterns
from shared.store.keys import EVERYWHERE

_KEY = EVERYWHERE + "doctor"
_GROUP = "doctor"
_SHA = "0" * 40
HARMLESS: tuple[tuple[str | int | float, ...], ...] = (
    # The key does not exist and no command creates it: any reply but NOPERM means permission.
    ("XADD", _KEY, "NOMKSTREAM", "*", "e", ""), ("XRANGE", _KEY, "-", "+"), ("XLEN", _KEY),
    ("XREADGROUP", "GROUP", _GROUP, _GROUP, "STREAMS", _KEY, ">"), ("XDEL", _KEY, "0-1"),
    ("XGROUP", "CREATE", _KEY, _GROUP, "0"), ("XCLAIM", _KEY, _GROUP, _GROUP, 0, "0-1"),
    ("XPENDING", _KEY, _GROUP), ("XINFO", "STREAM", _KEY), ("XINFO", "CONSUMERS", _KEY, _GROUP),
    ("GET", _KEY), ("SET", _KEY, "", "XX", "PX", 1), ("DEL", _KEY), ("EXISTS", _KEY),
    ("PEXPIRE", _KEY, 1), ("PTTL", _KEY), ("HGETALL", _KEY), ("HDEL", _KEY, "f"),
    ("ZADD", _KEY, "XX", 1, "m"), ("ZRANGE", _KEY, 0, -1), ("ZREM", _KEY, "m"),
    ("LPUSHX", _KEY, ""), ("BRPOP", _KEY, 0.001), ("SMEMBERS", _KEY), ("SREM", _KEY, "m"),
    ("SCAN", 0, "COUNT", 1), ("EVALSHA", _SHA, 0), ("SCRIPT", "LOAD", "return 1"),
    ("PUBLISH", _KEY, ""), ("UNWATCH",), ("TIME",), ("INFO", "server"),
    ("CONFIG", "GET", "appendfsync"),
)  # fmt: skip
_NO_SITE_AT_ALL = "{_doctor}:"
"""Prefix of keys that no site can have: its name has no underscore."""
_ANY_SITE = "{SITE}:"
_OPEN = "ACL", "USERS"
"""A command that shows whether a user of a role may do what an administrator may."""


def look(case: Case) -> DoctorFinding:
    """Try harmless commands: those of the user's role, or all for the administrator's."""
    user = urlsplit(case.settings.redis_url).username
    for role in ROLES:
        if user == user_of(role):
            return _of_role(case.client, role)
    if refused := _refused(case.client, HARMLESS):
        names = [" ".join(map(str, c[: 2 if c[0] in {"CONFIG", "SCRIPT", "XINFO"} else 1]))
                 for c in refused]  # fmt: skip
        todo = "grant this Redis user the rights in deploy/redis/sitemapd.acl"
        return fail(f"this Redis user may not: {', '.join(names)}", todo)
    if place := _open_to_all(case.settings.redis_url):
        return warn(
            f"whoever reaches {place} may change everything: Redis asks for no password",
            "give it users: sitemapd deploy-files DIR --roles",
        )
    return ok("this Redis user has all rights that sitemapd needs")


def tried(role: Role) -> Iterator[tuple[str, Command, bool]]:
    """Yield each key that tells kinds apart, a harmless command that reads or writes it, and
    whether `role` may send that.
    """
    rows = list(patterns(_NO_SITE_AT_ALL, EVERYWHERE))
    for row in rows:
        key = row.name.replace("*", "any")
        others = (other.name for other in rows if other is not row)
        if not any(name.endswith("*") and key.startswith(name[:-1]) for name in others):
            # Whatever type the key has: nothing is there, or no entry has this id.
            yield key, ("GET", key), "r" in row.of(role)
            yield key, ("XDEL", key, "0-1"), "w" in row.of(role)


def _of_role(client: redis.Redis, role: Role) -> DoctorFinding:
    wanted = list(tried(role))
    refused = set(_refused(client, [command for _, command, _ in wanted]))
    lacks = sorted({key for key, command, may in wanted if may and command in refused})
    more = sorted({key for key, command, may in wanted if not may and command not in refused})
    if not _refused(client, [_OPEN]):
        more.append("commands of the administrator")
    todo = "write its line of redis/sitemapd.acl again: sitemapd deploy-files DIR --roles"
    if lacks:
        text = ", ".join(lacks).replace(_NO_SITE_AT_ALL, _ANY_SITE)
        return fail(f"the user {user_of(role)} may not use: {text}", todo)
    if more:
        text = ", ".join(more).replace(_NO_SITE_AT_ALL, _ANY_SITE)
        return warn(f"the user {user_of(role)} may do more than its role: {text}", todo)
    return ok(f"the user {user_of(role)} has the rights of its role, and no more")


def _refused(client: redis.Redis, commands: Iterable[Command]) -> list[Command]:
    """Return those of `commands` that this user may not send."""
    commands = list(commands)
    with answering():
        pipe = client.pipeline(transaction=False)
        for command in commands:
            pipe.execute_command(*command)  # type: ignore[no-untyped-call]
        replies: list[Any] = pipe.execute(raise_on_error=False)
    return [
        command
        for command, reply in zip(commands, replies, strict=True)
        if isinstance(reply, NoPermissionError)
    ]


def _open_to_all(url: str) -> str:
    """Return the place of a server that others reach and that lets everybody in; else empty."""
    if not url or urlsplit(url).password or "ssl_certfile=" in url:
        return ""
    places = [name for name, _ in redis_address.parse(url).hosts if not _is_here(name)]
    return places[0] if places else ""


def _is_here(name: str) -> bool:
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return name == "localhost"


CHECK = DoctorCheck(
    "redis rights", "whether this Redis user has all needed rights", look, "see the log of Redis",
    once=True, store=True,
)  # fmt: skip
