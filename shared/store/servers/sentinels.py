"""Connections to the master that Redis Sentinel names, asked for at each connect.

After a failover the connections to the former master end: Sentinel closes them when it makes it a
replica, and a reply READONLY closes its own. The next command asks the sentinels again. As they may
name a former master for a while, each connection asks its server for its role
(https://redis.io/docs/latest/develop/reference/sentinel-clients/, step 3).
"""

from __future__ import annotations

from typing import Any

import redis
from redis.connection import parse_url
from redis.sentinel import Sentinel, SentinelConnectionPool

from shared.config.redis_address import RedisAddress

ASK_S = 0.5
"""Seconds for which one sentinel is waited for: the next one knows as much."""


def master_pool(address: RedisAddress, waits: dict[str, Any]) -> redis.ConnectionPool:
    """Return a pool of connections to the master of `address`, which asks when it connects."""
    options: dict[str, Any] = parse_url(address.plain) | waits  # type: ignore[no-untyped-call]
    for name in ("host", "port", "connection_class"):
        options.pop(name, None)
    asked = waits | {"socket_timeout": ASK_S, "socket_connect_timeout": ASK_S}
    asked |= address.sentinel_options
    if address.tls:
        options["ssl"] = asked["ssl"] = True
        asked |= {name: value for name, value in options.items() if name.startswith("ssl_")}
    options["redis_connect_func"] = _greet
    manager: Any = Sentinel(address.hosts, sentinel_kwargs=asked)  # type: ignore[no-untyped-call]
    return SentinelConnectionPool(address.master, manager, **options)  # type: ignore[no-untyped-call]


def _greet(connection: Any) -> None:
    connection.on_connect()
    connection.send_command("ROLE")
    role, *_ = connection.read_response()
    if role not in {b"master", "master"}:
        raise redis.ConnectionError(
            f"the sentinels name {connection.host}:{connection.port}, which is no master any more"
        )
