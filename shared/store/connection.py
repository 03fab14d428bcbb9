"""Connection to the Redis of the state: one server, a master that sentinels name, or a cluster."""

from __future__ import annotations

import weakref
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from shared.config import redis_address

PATIENCE_S = 10.0
"""Seconds for which workers and commands wait for a reply; senders are answered sooner."""


def connect(url: str, timeout: float, replicas: int = 0) -> redis.Redis:
    """Return a client that gives up after `timeout` seconds and never retries a command. What it
    commits is confirmed by `replicas`; of sentinels or a cluster by one at least.

    redis-py's own default hangs for a minute on a frozen server, and a repeated XADD leaves two
    entries (DESIGN 9).
    """
    address = redis_address.parse(url)
    if address.kind == "sentinel":
        from shared.store.servers.sentinels import master_pool

        client: redis.Redis = redis.Redis(connection_pool=master_pool(address, waits(timeout)))
    elif address.kind == "cluster":
        from shared.store.servers.cluster import ClusterClient

        client = ClusterClient(address, waits(timeout))
    else:
        client = redis.Redis.from_url(url, **waits(timeout))
        if address.tls:
            from shared.store.servers.tls import TlsConnection

            client.connection_pool.connection_class = TlsConnection
    if replicas or address.kind in {"sentinel", "cluster"}:
        from shared.store.servers import replica_wait

        replica_wait.of_commits(client, replicas)
    # In a garbage cycle a socket may be collected before its connection, with a ResourceWarning.
    weakref.finalize(client, client.connection_pool.disconnect).atexit = False
    return client


def waits(timeout: float) -> dict[str, Any]:
    """Return the options of redis-py for bounded waits without retries."""
    return {
        "socket_timeout": timeout,
        "socket_connect_timeout": min(timeout, 1.0),
        "retry": Retry(NoBackoff(), 0),
        "protocol": 2,
        # redis-py would look for its version among the installed packages, at every start.
        "driver_info": redis.DriverInfo(lib_version=redis.__version__),
    }
