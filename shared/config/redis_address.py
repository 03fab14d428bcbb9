"""Addresses of Redis: one server, a master that sentinels know, or a cluster.

No message repeats an address: it may hold a password (RELIABILITY T30).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Literal, NamedTuple
from urllib.parse import SplitResult, parse_qsl, urlsplit

FORMS = (
    "must be redis://HOST:6379/0, unix:///run/redis/redis.sock, "
    "redis+sentinel://HOST:26379,HOST:26379/MASTER/0 or redis+cluster://HOST:6379,HOST:6379 "
    "(Redis or Valkey; with TLS rediss://, rediss+sentinel://, rediss+cluster://)"
)
_KNOWN = ("client_name", "db", "health_check_interval", "password", "username")
_SENTINEL = ("sentinel_password", "sentinel_username")
"""Accepted options of redis-py, besides those of TLS. Others change timeouts or what is read."""
_SCHEMES = {
    "redis": "server", "rediss": "server", "unix": "socket",
    "redis+sentinel": "sentinel", "rediss+sentinel": "sentinel",
    "redis+cluster": "cluster", "rediss+cluster": "cluster",
}  # fmt: skip
_PORTS = {"sentinel": 26379, "cluster": 6379, "server": 6379}
_MASTER = re.compile(r"/[A-Za-z0-9_.-]+(?:/[0-9]{1,5})?/?")

Host = tuple[str, int]


class RedisAddress(NamedTuple):
    """A parsed address. `plain` is the same in the spelling of redis-py, for several servers with
    the first of `hosts`. `master` is empty unless sentinels are asked for it.
    """

    kind: Literal["server", "socket", "sentinel", "cluster"]
    plain: str
    hosts: tuple[Host, ...]
    tls: bool
    master: str
    sentinel_options: dict[str, str]


def check(text: str) -> str:
    """Check the address of a Redis-compatible store, as redis-py and Celery both read it."""
    if not text:
        return text
    address = parse(text)
    names = [name for name, _ in parse_qsl(urlsplit(text).query, keep_blank_values=True)]
    known = [*_KNOWN, *(_SENTINEL if address.kind == "sentinel" else ())]
    if unknown := [o for o in names if o not in known and not o.startswith("ssl_")]:
        raise ValueError(
            f"{', '.join(unknown)}: not supported as an option; supported: "
            f"{', '.join(sorted(known))} and ssl_..."
        )
    if names:
        _check_options(address.plain)
    return text


def parse(text: str) -> RedisAddress:
    """Return the parts of an address. Raises ValueError with the remedy."""
    try:
        parts = urlsplit(text)
        kind: Any = _SCHEMES[parts.scheme]
        clean = text.isprintable() and " " not in text and not parts.fragment
        parser: Callable[..., RedisAddress] = _PARSERS[kind if clean else ""]
        return parser(kind, parts, text)
    except (ValueError, KeyError) as error:  # the port, or a host in brackets
        raise ValueError(str(error) if isinstance(error, _WrongFormError) else FORMS) from None


class _WrongFormError(ValueError):
    """An address of several servers with one part that is wrong."""


def _one(kind: Any, parts: SplitResult, text: str) -> RedisAddress:
    named = parts.hostname and parts.port != 0 and "," not in parts.netloc
    if not named or re.fullmatch(r"/?|/[0-9]{1,5}", parts.path) is None:
        raise ValueError
    host = (parts.hostname or "", parts.port or _PORTS[kind])
    return RedisAddress(kind, text, (host,), parts.scheme == "rediss", "", {})


def _socket(kind: Any, parts: SplitResult, text: str) -> RedisAddress:
    if parts.netloc[-1:] not in {"", "@"} or parts.path[:1] != "/" or parts.path == "/":
        raise ValueError
    return RedisAddress(kind, text, (), False, "", {})


def _many(kind: Any, parts: SplitResult, _text: str) -> RedisAddress:
    user, at, places = parts.netloc.rpartition("@")
    hosts = tuple(_host(place, _PORTS[kind]) for place in places.split(","))
    tls, master, path = parts.scheme.startswith("rediss"), "", parts.path
    if kind == "sentinel":
        if not _MASTER.fullmatch(path):
            raise _WrongFormError(
                "must name the master that the sentinels watch: "
                f"{parts.scheme}://HOST:26379,HOST:26379/MASTER/0"
            )
        _, master, *database = path.rstrip("/").split("/")
        path = "/" + (database[0] if database else "0")
    elif path not in {"", "/", "/0"}:
        raise _WrongFormError("must name no database: a cluster has only number 0")
    options = parse_qsl(parts.query, keep_blank_values=True)
    rest = "&".join(each for each in parts.query.split("&") if not each.startswith("sentinel_"))
    name, port = hosts[0]
    place = f"[{name}]" if ":" in name else name
    scheme = "rediss" if tls else "redis"
    plain = f"{scheme}://{user}{at}{place}:{port}{path}" + (f"?{rest}" if rest else "")
    of_sentinels = {
        name.removeprefix("sentinel_"): value for name, value in options if name in _SENTINEL
    }
    return RedisAddress(kind, plain, hosts, tls, master, of_sentinels)


def _host(text: str, default: int) -> Host:
    parts = urlsplit(f"//{text}")
    if not parts.hostname or "@" in text or parts.port == 0 or parts.path:
        raise ValueError
    return parts.hostname, parts.port or default


_PARSERS: dict[str, Any] = {
    "server": _one, "socket": _socket, "sentinel": _many, "cluster": _many
}  # fmt: skip


def _check_options(text: str) -> None:
    # Imported for the few addresses that have options: redis takes 0.15 s to import.
    import redis

    try:
        redis.ConnectionPool.from_url(text).make_connection()
    except (redis.RedisError, ValueError, TypeError, AttributeError) as error:
        raise ValueError(f"invalid option: {type(error).__name__}; {FORMS}") from None
