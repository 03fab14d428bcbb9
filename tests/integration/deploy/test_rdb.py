"""Snapshots of both engines, read key by key: RESTORE is given what DUMP would have said."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from deploy.backups.packed import hash_of
from deploy.backups.rdb import Key, Snapshot, payload
from deploy.backups.sync import receive
from shared.errors import StoreError
from tests.integration.conftest import RedisServer, Wait

VERSION = 2
SHORT = [b"5", b"-300", b"123456789", b"9" * 30, b"ab" * 40, b"", b"x" * 20_000]
COUNTERS = {
    b"small": b"7", b"n13": b"-4000", b"n16": b"30000", b"n24": b"-5000000", b"n32": b"2147483647",
    b"n64": b"1152921504606846976", b"text": b"a" * 64, b"packed": b"ab" * 30,
}  # fmt: skip


def fill(server: redis.Redis) -> None:
    """Every form that a key of a site can have, and some that others may have beside it."""
    client = server.pipeline(transaction=False)  # one flush of the log for all
    chance = random.Random(5)
    for number in range(40):
        fields = {b"%d" % n: chance.randbytes(chance.randrange(90)) for n in range(number + 1)}
        client.hset(f"{{demo}}:hash{number}", mapping=fields)  # type: ignore[arg-type]
        client.zadd(f"{{demo}}:zset{number}", {str(n): chance.random() for n in range(number * 5)}
                    | {"only": 1.5})  # fmt: skip
        client.xadd("{demo}:inbox", {"e": chance.randbytes(300)})
    for number, text in enumerate(SHORT):
        client.set(f"{{demo}}:seen:{number}", text, ex=1000)
    client.hset("{demo}:counters", mapping=COUNTERS)  # type: ignore[arg-type]
    client.hset("{demo}:large", mapping={str(n): "x" * 70 for n in range(600)})
    client.xgroup_create("{demo}:inbox", "workers", id="0")
    client.xgroup_createconsumer("{demo}:inbox", "workers", "idle")
    for consumer, count in (("w1", 15), ("w2", 5)):
        client.xreadgroup("workers", consumer, {"{demo}:inbox": ">"}, count=count)
    client.rpush("others", *(chance.randbytes(3000) for _ in range(9)))
    client.sadd("some", "a", "b")
    client.sadd("numbers", 1, 2, 3)
    client.execute()


@pytest.fixture
def filled(engine: RedisServer) -> Iterator[redis.Redis]:
    with engine.client() as client:
        client.flushall()
        fill(client)
        yield client


def snapshot(client: redis.Redis) -> dict[bytes, Key]:
    with tempfile.TemporaryFile() as file:
        found, origin = receive(client, file)
        return {key.name: key for key in found.keys(origin.database, (b"{demo}:",))}


def test_every_key_is_what_the_server_itself_would_dump(filled: redis.Redis) -> None:
    keys = snapshot(filled)

    assert set(keys) == set(filled.keys("{demo}:*"))
    for name, key in keys.items():
        dumped = filled.dump(name)
        assert dumped is not None
        if name != b"{demo}:inbox":  # newer engines keep more of a stream than 7.0 can read
            assert payload(key.value)[:-10] == dumped[:-10], name
        assert key.expires_ms == max(0, filled.pexpiretime(name)), name


def test_a_small_hash_is_read_without_a_server(filled: redis.Redis) -> None:
    keys = snapshot(filled)

    assert hash_of(keys[b"{demo}:counters"].value) == COUNTERS
    for name in (b"{demo}:hash3", b"{demo}:hash39", b"{demo}:large"):
        assert hash_of(keys[name].value) == filled.hgetall(name)


def test_a_stream_says_what_waits_and_what_was_given_out(filled: redis.Redis) -> None:
    inbox = snapshot(filled)[b"{demo}:inbox"]

    assert (inbox.entries, inbox.pending) == (40, 20)


def test_any_engine_takes_what_any_other_wrote(
    filled: redis.Redis, every_engine: list[RedisServer]
) -> None:
    """Valkey 9 and Redis 7.2 mark their payloads as newer than Redis 7.0 can read."""
    keys = snapshot(filled)
    for other in every_engine:
        with other.client() as client:
            client.select(3)
            client.flushdb()
            for name, key in keys.items():
                client.restore(name, key.expires_ms, payload(key.value), absttl=key.expires_ms > 0)  # type: ignore[arg-type]
            assert client.dbsize() == len(keys)
            assert client.hgetall("{demo}:large") == filled.hgetall("{demo}:large")
            assert client.xrange("{demo}:inbox") == filled.xrange("{demo}:inbox")
            consumers = client.xinfo_consumers("{demo}:inbox", "workers")
            held = {(row["name"], row["pending"]) for row in consumers}
            assert held == {(b"w1", 15), (b"w2", 5), (b"idle", 0)}
            given = client.xpending_range("{demo}:inbox", "workers", "-", "+", 100)
            assert {row["times_delivered"] for row in given} == {1}
            client.flushdb()


def test_a_snapshot_that_a_replica_asked_for_earlier_is_not_taken_for_a_new_one(
    engine: RedisServer, until: Wait
) -> None:
    """A server at work on one gives it to all who ask meanwhile: 200 keys take it a second here."""
    with engine.client() as client, engine.client() as replica:
        client.flushall()
        client.mset({f"{{demo}}:{number}": "before" for number in range(200)})
        client.config_set("rdb-key-save-delay", 5000)
        connection: Any = replica.connection_pool.get_connection()
        connection.send_command("SYNC")
        until(lambda: client.info("persistence")["rdb_bgsave_in_progress"], "it is at work")
        client.set("{demo}:later", "acknowledged")
        keys = snapshot(client)
        client.config_set("rdb-key-save-delay", 0)
        connection.disconnect()

    assert b"{demo}:later" in keys
    assert len(keys) == 201


def test_only_the_database_in_use_is_read(engine: RedisServer) -> None:
    with engine.client() as client:
        client.flushall()
        client.set("{demo}:a", "of database 0")
    with redis.Redis.from_url(engine.url + "?db=2") as client:
        client.set("{demo}:b", "of database 2")
        assert set(snapshot(client)) == {b"{demo}:b"}


@pytest.mark.parametrize("spoil", ["cut", "flip", "empty", "other"])
def test_a_damaged_snapshot_is_refused(filled: redis.Redis, tmp_path: Path, spoil: str) -> None:
    path = tmp_path / "snapshot"
    with path.open("w+b") as file:
        receive(filled, file)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes({"cut": data[:-9], "flip": data, "empty": b"", "other": b"x" * 99}[spoil])

    with path.open("rb") as file, pytest.raises(StoreError, match="damaged"):
        Snapshot(file.fileno())


def test_a_user_who_may_not_is_told_what_to_allow(engine: RedisServer) -> None:
    with engine.client() as client:
        may = ["+@read", "+info"]
        client.acl_setuser("reader", enabled=True, nopass=True, commands=may, keys=["*"])
    url = engine.url.replace("unix://", "unix://reader:any@")
    with (
        redis.Redis.from_url(url) as client,
        tempfile.TemporaryFile() as file,
        pytest.raises(StoreError, match=r"\+sync \+replconf"),
    ):
        receive(client, file)


def test_a_form_that_is_not_known_is_refused_by_the_name_of_its_key(
    store: redis.Redis,
) -> None:
    store.hset("{demo}:later", "a", "1")
    try:
        store.execute_command("HEXPIRE", "{demo}:later", "1000", "FIELDS", "1", "a")
    except redis.ResponseError:
        pytest.skip("this server knows no field with a time to live")

    with pytest.raises(StoreError, match=r"\{demo\}:later is kept in a form"):
        snapshot(store)
