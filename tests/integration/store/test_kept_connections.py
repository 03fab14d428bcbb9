"""Scripts over connections that are kept: never stale, never a reply too late, none too many."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator

import pytest
import redis

from shared.errors import StoreDownError
from shared.store.client import Scripts, kept_connections
from shared.store.connection import connect
from tests.integration.conftest import RedisServer


@pytest.fixture
def client(fragile_redis: RedisServer) -> Iterator[redis.Redis]:
    with connect(fragile_redis.url, 1.0) as client:
        client.flushall()
        yield client


def unlock(client: redis.Redis) -> object:
    return Scripts(client)("lua/unlock", ["lock"], "mine")


def test_a_script_runs_at_the_first_attempt_after_a_restart_of_the_server(
    fragile_redis: RedisServer, client: redis.Redis
) -> None:
    client.set("lock", "mine")
    unlock(client)
    fragile_redis.stop()
    fragile_redis.start()

    client.set("lock", "mine")
    unlock(client)

    assert client.get("lock") is None


def test_a_reply_that_came_too_late_is_not_taken_for_the_next_one(
    fragile_redis: RedisServer, client: redis.Redis
) -> None:
    exchange = kept_connections(client).exchange
    assert exchange(("ECHO", "first")) == [b"first"]
    fragile_redis.send(signal.SIGSTOP)
    try:
        with pytest.raises(StoreDownError, match="does not answer"):
            unlock(client)
    finally:
        fragile_redis.send(signal.SIGCONT)

    assert exchange(("ECHO", "second"), ("ECHO", "third")) == [b"second", b"third"]


def test_an_error_of_one_command_leaves_the_replies_of_the_others(client: redis.Redis) -> None:
    replies = kept_connections(client).exchange(("ECHO", "a"), ("HGET", "nothing"), ("ECHO", "b"))

    assert (replies[0], replies[2]) == (b"a", b"b")
    assert isinstance(replies[1], redis.ResponseError)


def test_threads_share_no_connection_and_none_is_opened_twice_for_the_same_number_of_threads(
    client: redis.Redis,
) -> None:
    """Each thread must get its own replies."""
    exchange, wrong = kept_connections(client).exchange, list[str]()

    def work(name: str) -> None:
        for number in range(200):
            if exchange(("ECHO", f"{name} {number}")) != [f"{name} {number}".encode()]:
                wrong.append(f"{name} {number}")

    for _ in range(3):
        threads = [threading.Thread(target=work, args=(str(n),)) for n in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    assert not wrong
    # This client's own connection is one, and each thread's at most one more.
    assert len(client.client_list()) <= 8
