"""Users of Redis, one for each role, with the rights that shared/store/key_rights.py declares.

Rules that Redis 7.0 and every Valkey know. Both files of users are lines of `user` only: a comment
in them is an error.
"""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from secrets import token_hex
from urllib.parse import quote, unquote, urlsplit

from shared.config import redis_address
from shared.store.key_rights import Role, patterns
from shared.store.keys import EVERYWHERE

_VARIABLE = "SITEMAPD_REDIS_URL"
ANY_SITE = "{*}:"
_FLAGS = {"r": "%R~", "w": "%W~", "rw": "~"}

# What these categories hold beside, ends processes and connections of others or reads all keys.
_CONNECTIONS = "+@connection +@transaction -@dangerous -@admin -@keyspace"
_SERVER = "+info +time +role +config|get +cluster|slots +evalsha +script|load +script|exists"
_COMMANDS = {
    # Each command that the webhook and the console send, or a script of theirs calls. Scripts may
    # call no other, whoever wrote them.
    "web": (
        "+get +getdel +mget +set +incrby +bitfield +del +exists +expire +pexpire +ttl +pttl +type "
        "+hget +hgetall +hmget +hkeys +hlen +hexists +hscan +hset +hsetnx +hdel +hincrby "
        "+lpush +rpush +llen +lrange +smembers +sadd +sismember +publish "
        "+zadd +zcard +zcount +zrange +zrangebyscore +zscore +zrem +zremrangebyscore "
        "+xadd +xack +xdel +xlen +xrange +xrevrange +xpending +xinfo|stream +xinfo|groups"
    ),
    "worker": "+@read +@write +@pubsub -@dangerous -@admin -function",
}  # fmt: skip
_CHANNELS = {"web": "", "worker": "&/{database}.celery.pidbox &/*.celery*"}


def user_of(role: Role) -> str:
    """Return the name of the user of a role."""
    return f"sitemapd-{role}"


def rules(role: Role, database: int = 0) -> str:
    """Return the ACL rules of a role. `database` is that of the broker: kombu listens to channels
    by PSUBSCRIBE, which Redis allows for a pattern that is listed letter by letter.
    """
    keys = " ".join(
        _FLAGS[row.of(role)] + row.name for row in patterns(ANY_SITE, EVERYWHERE) if row.of(role)
    )
    channels = _CHANNELS[role].format(database=database)
    commands = f"-@all {_CONNECTIONS} {_COMMANDS[role]} {_SERVER}"
    return " ".join(f"resetchannels {channels} resetkeys {keys} {commands}".split())


def line(role: Role, digest: str, database: int = 0) -> str:
    """Return the line of a role in a file of users; `digest` is the SHA-256 of its password."""
    return f"user {user_of(role)} on #{digest} {rules(role, database)}\n"


def digest_of(password: str) -> str:
    """Return the SHA-256 of a password, as Redis keeps it."""
    return sha256(password.encode()).hexdigest()


def new_password() -> str:
    """Return a password that nobody can guess; of hexadecimal digits, which addresses hold as they
    are.
    """
    return token_hex(32)


def variables(role: Role) -> str:
    """Return the path, below a directory laid out like /etc, of the file with a role's address."""
    return f"sitemapd/{role}.env"


def address_of(role: Role, redis_url: str, password: str) -> str:
    """Return the file that gives the parts of a role their address of Redis, as systemd and
    containers read it.
    """
    parts = urlsplit(redis_url)
    place = parts.netloc.rpartition("@")[2]
    netloc = f"{user_of(role)}:{quote(password, safe='')}@{place}"
    return f"{_VARIABLE}={parts._replace(netloc=netloc).geturl()}\n"


def password_in(path: Path) -> str:
    """Return the password in a file of `address_of`; empty without one."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    found = [each.partition("=")[2] for each in lines if each.startswith(f"{_VARIABLE}=")]
    return unquote(urlsplit(found[-1]).password or "") if found else ""


def database(redis_url: str) -> int:
    """Return the number of the database that an address names."""
    from redis.connection import parse_url

    options = parse_url(redis_address.parse(redis_url).plain)  # type: ignore[no-untyped-call]
    return int(options.get("db", 0))
