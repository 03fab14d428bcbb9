"""Each role may do with each kind of key what is declared, and a server refuses the rest."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
import redis
from redis.exceptions import NoPermissionError

from deploy.doctor.rights import tried
from deploy.host_files import redis_users
from shared.sitemap.shards import Shard
from shared.store.connection import connect
from shared.store.key_rights import OF_NO_SITE, OF_SITES, ROLES, Role
from shared.store.key_table import PERMANENT
from shared.store.keys import Keys
from tests.integration.conftest import RedisServer

SHIPPED = Path(__file__).resolve().parents[3] / "deploy" / "redis" / "roles.acl"
GIVEN = {"shard": Shard("a", 1), "digest": b"x" * 16, "owner": b"x" * 16, "group": b"g"}
NUMBERS = ("minute", "hour", "week", "page")
"""Arguments of the methods of Keys that are no text."""

Asking = Callable[[Role], redis.Redis]


@pytest.fixture
def asking(engine: RedisServer) -> Iterator[Asking]:
    """A client of each role."""
    clients: list[redis.Redis] = []

    def of(role: Role) -> redis.Redis:
        clients.append(connect(engine.url_of(role), 5))
        return clients[-1]

    with engine.client() as owner:
        owner.flushall()
        yield of
        owner.flushall()
    for client in clients:
        client.close()


def may(client: redis.Redis, *command: str | float) -> bool:
    try:
        client.execute_command(*command)  # type: ignore[no-untyped-call]
    except NoPermissionError:
        return False
    except redis.ResponseError:  # of the command itself, which was let in
        return True
    return True


@pytest.mark.parametrize("role", ROLES)
def test_each_role_may_do_with_each_key_what_is_declared_and_no_more(
    role: Role, asking: Asking
) -> None:
    client = asking(role)
    commands = list(tried(role))

    assert len(commands) > 150
    for _, command, allowed in commands:
        assert may(client, *command) == allowed, command


WEB_IS_REFUSED = """
HSET {demo}:loc:1 f v | HDEL {demo}:section:a:blocks:1 1 | HSET {demo}:counters form 1
DEL {demo}:section:a:shards | HSET {demo}:section:a:pending:1 f v | ZREM {demo}:tombs m
DEL {demo}:lease | HDEL {demo}:quarantine * | HSET {_sitemapd}:alerts a b
SET {_sitemapd}:worker:w1 x | HGET {_sitemapd}:alerts a | SET other x | GET other
DEL {demo}~restored | BRPOP sitemapd 1 | LPOP sitemapd | LPUSH unacked x | KEYS * | SCAN 0
RANDOMKEY | FLUSHDB | FLUSHALL | CONFIG SET dir /tmp | ACL LIST | RESTORE {demo}:inbox 0 x
RENAME {demo}:inbox {demo}:dead | EVAL return 0 | SUBSCRIBE /0.celery.pidbox | SHUTDOWN
MONITOR | SYNC | MIGRATE h 1 k 0 1 | FUNCTION LOAD x | CLIENT KILL ID 1 | CLIENT LIST
SWAPDB 0 1 | REPLICAOF NO ONE | MODULE LIST | SLOWLOG GET | SORT {demo}:dirty
"""
WORKER_IS_REFUSED = """
GET {_sitemapd}:session:x | SET {_sitemapd}:session:x y | GETDEL {_sitemapd}:once:x
XADD {_sitemapd}:audit * a b | XRANGE {_sitemapd}:audit - + | SET other x | GET other
XDEL {demo}:refused 0-1 | DEL {demo}:purged:1 | DEL {demo}~restored | KEYS * | FLUSHDB
FLUSHALL | CONFIG SET dir /tmp | ACL LIST | PSUBSCRIBE * | RESTORE {demo}:inbox 0 x | SHUTDOWN
MONITOR | SYNC | MIGRATE h 1 k 0 1 | FUNCTION LOAD x | CLIENT KILL ID 1 | SWAPDB 0 1
REPLICAOF NO ONE | SAVE | EVAL return 0
"""
WEB_NEEDS = """
XADD {demo}:inbox * e x | SET {demo}:seen:a x EX 9 | HSETNX {demo}:paused events 1
ZADD {demo}:dirty 1 a/1 | HDEL {demo}:held a/1 | HSET {demo}:allowed a 1
XADD {_sitemapd}:audit * a b | GETDEL {_sitemapd}:once:x | HGETALL {demo}:counters
HGET {demo}:loc:1 a | LPUSH sitemapd x | LLEN sitemapd\x06\x163 | WAIT 0 1
CONFIG GET appendonly | CLUSTER SLOTS | MULTI | SELECT 0
"""
WORKER_NEEDS = """
HSET {demo}:loc:1 f v | HSET {demo}:section:a:blocks:1 1 x | BRPOP sitemapd 0.001
RENAME {demo}:dead {demo}:dead | PSUBSCRIBE /0.celery.pidbox
PUBLISH /0.celeryev/worker.online x | HSET unacked t x | SCAN 0 COUNT 1
SET {_sitemapd}:worker:w1 x | WAIT 0 1 | HSET {_sitemapd}:alerts a b | CONFIG GET appendonly
INFO | TIME
"""
COMMANDS = [
    (role, allowed, command)
    for role, allowed, text in (
        ("web", True, WEB_NEEDS), ("web", False, WEB_IS_REFUSED),
        ("worker", True, WORKER_NEEDS), ("worker", False, WORKER_IS_REFUSED),
    )
    for command in re.split(r" \| |\n", text.strip())
]  # fmt: skip


@pytest.mark.parametrize(("role", "allowed", "command"), COMMANDS)
def test_a_role_may_do_what_it_needs_and_is_refused_the_rest(
    role: Role, allowed: bool, command: str, asking: Asking
) -> None:
    assert may(asking(role), *command.split(" ")) == allowed


def test_a_script_of_the_web_role_changes_no_page_whatever_keys_it_names(asking: Asking) -> None:
    client = asking("web")
    script = "return redis.call('HSET', '{demo}:loc:1', 'f', 'v')"
    digest = client.script_load(script)

    with pytest.raises(redis.ResponseError, match=r"permission|can't access"):
        client.evalsha(digest, 1, "{demo}:inbox")
    with pytest.raises(NoPermissionError):
        client.evalsha(digest, 1, "{demo}:loc:1")


def _named(keys: Keys) -> Iterator[str]:
    """Every key that `keys` names, without the prefix."""
    for _, name in inspect.getmembers(keys, lambda member: isinstance(member, str)):
        if name.startswith(keys.prefix) and name != keys.prefix:
            yield name
    for name, method in inspect.getmembers(keys, inspect.ismethod):
        if name != "__init__":
            wanted = inspect.signature(method).parameters
            yield method(*(GIVEN.get(each, 1 if each in NUMBERS else "x") for each in wanted))


def test_every_key_has_its_rights_declared() -> None:
    keys = Keys("demo")
    named = [name.removeprefix(keys.prefix) for name in _named(keys)]
    assert len(named) > 60

    assert not [n for n in named if not any(fnmatchcase(n, row.name) for row in OF_SITES)]
    every = [row.name for row in (*OF_SITES, *OF_NO_SITE)]
    assert not [part for part in PERMANENT if not any(name.startswith(part) for name in every)]
    assert len(set(every)) == len(every)


def test_the_shipped_users_are_those_of_the_declaration() -> None:
    made = "".join(
        redis_users.line(role, f"@SHA256-OF-THE-{role.upper()}-PASSWORD@") for role in ROLES
    )
    assert SHIPPED.read_text() == made
