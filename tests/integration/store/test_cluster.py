"""The client of a cluster: real nodes, slots that move, a master that is killed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import redis
from redis.crc import key_slot

from shared.errors import StoreDownError, StoreError, UnsafeStoreError
from shared.store.client import PipelinedScript, Scripts, answering, kept_connections
from shared.store.connection import connect
from shared.store.counting import counter_buffer
from shared.store.keys import EVERYWHERE, Keys
from shared.store.notify.subscriptions import Subscriptions
from shared.store.server_settings import check_settings
from shared.store.servers.replica_wait import ConfirmedScripts, ReplicaWait
from tests.faults.parts import until
from tests.scale.servers import Cluster, Server, programs

SITES = [f"site-{n}" for n in range(12)]


@pytest.fixture(scope="module", params=programs(), ids=lambda path: path.name)
def cluster(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("cluster"), request.param) as running:
        yield running


@pytest.fixture
def client(cluster: Cluster) -> Iterator[redis.Redis]:
    with connect(cluster.url, 5) as client:
        yield client


def _slot(site: str) -> int:
    return key_slot(site.encode())


def _another(cluster: Cluster, slot: int) -> Server:
    owner = cluster.owner(slot)
    ports = {port for *_, port in cluster.slots()}
    return next(each for each in cluster.servers if each.port in ports and each is not owner)


def test_the_sites_are_spread_over_the_masters(cluster: Cluster) -> None:
    assert len({cluster.owner(_slot(site)).port for site in SITES}) == 3


def test_one_pipeline_reads_and_writes_sites_of_all_nodes_in_order(client: redis.Redis) -> None:
    write, read = client.pipeline(transaction=False), client.pipeline(transaction=False)
    for number, site in enumerate(SITES):
        write.set(Keys(site).shape, number)
        read.get(Keys(site).shape)

    write.execute()

    assert read.execute() == [b"%d" % n for n in range(len(SITES))]


def test_commands_of_all_nodes_share_one_exchange(client: redis.Redis) -> None:
    commands = [("SET", Keys(site).shape, n) for n, site in enumerate(SITES)]
    kept_connections(client).exchange(*commands)

    found = kept_connections(client).exchange(*(("GET", Keys(site).shape) for site in SITES))

    assert found == [b"%d" % n for n in range(len(SITES))]


def test_counts_of_all_sites_are_stored_at_once(client: redis.Redis) -> None:
    client.delete(EVERYWHERE + "counts")
    buffer = counter_buffer.of(client)
    for site in ("", *SITES):
        buffer.add(site, "a-count")

    buffer.flush(client)

    assert client.hget(EVERYWHERE + "counts", "a-count") == b"1"


def test_a_watched_key_is_written_on_its_own_node(client: redis.Redis) -> None:
    for site in SITES:
        subscriptions = Subscriptions(client, site)
        subscriptions.add(["https://a.example/feed"], 1)
        changed = subscriptions.change("https://a.example/feed", lambda one: one._replace(due=7))

        assert changed
        assert [each.due for each in subscriptions.all()] == [7]


def test_the_keys_of_one_site_are_found_by_scan(client: redis.Redis) -> None:
    for site in SITES:
        client.set(Keys(site).cluster(b"0123456789abcdef"), 1)

    for site in SITES:
        assert len([*client.scan_iter(Keys(site).prefix + "cluster:*")]) == 1


def test_a_script_that_no_node_knows_is_loaded_where_it_runs(
    cluster: Cluster, client: redis.Redis
) -> None:
    for server in cluster.servers:
        server.ask("SCRIPT", "FLUSH")
    run = Scripts(client)

    for site in SITES:
        client.set(Keys(site).lease, "mine")
        assert run("lua/unlock", [Keys(site).lease], "mine") == 1


def test_a_script_runs_whole_or_not_at_all_while_its_slot_moves(
    cluster: Cluster, client: redis.Redis
) -> None:
    site, lease = SITES[0], Keys(SITES[0]).lease
    client.set(lease, "mine")
    client.set(Keys(site).shape, "other")
    run, seen = Scripts(client), list[Any]()

    def between() -> None:
        with pytest.raises(StoreDownError, match="are being moved"):
            run("lua/unlock", [lease], "mine")
        seen.append(client.get(lease))
        seen.append(kept_connections(client).exchange(("GET", Keys(site).shape))[0])
        pipe = client.pipeline()
        pipe.get(lease)
        pipe.get(Keys(site).shape)
        pipe.set(Keys(site).tombs, "never")
        with pytest.raises(StoreDownError, match="are being moved"), answering():
            pipe.execute()

    cluster.move(_slot(site), _another(cluster, _slot(site)), between)

    assert seen == [b"mine", b"other"]
    assert run("lua/unlock", [lease], "mine") == 1
    assert client.get(Keys(site).tombs) is None


@pytest.mark.parametrize("way", ["command", "pipeline", "transaction", "exchange"])
def test_a_moved_slot_is_followed(cluster: Cluster, client: redis.Redis, way: str) -> None:
    site = SITES[1]
    key = Keys(site).shape
    client.set(key, "kept")
    cluster.move(_slot(site), _another(cluster, _slot(site)))
    ways: dict[str, Callable[[], Any]] = {
        "command": lambda: client.get(key),
        "pipeline": lambda: client.pipeline(transaction=False).get(key).execute()[0],
        "transaction": lambda: client.pipeline().get(key).execute()[0],
        "exchange": lambda: kept_connections(client).exchange(("GET", key))[0],
    }

    assert ways[way]() == b"kept"


def test_a_client_of_a_cluster_that_is_down_fails_at_the_first_command() -> None:
    with connect("redis+cluster://127.0.0.1:1,127.0.0.1:2", 1) as lost:
        with pytest.raises(StoreDownError):
            Scripts(lost)("lua/unlock", [Keys("demo").lease], "mine")
        with pytest.raises(StoreDownError), answering():
            lost.ping()


def test_after_a_master_was_killed_its_replica_serves(
    cluster: Cluster, client: redis.Redis
) -> None:
    site = SITES[2]
    client.set(Keys(site).lease, "mine")
    client.execute_command("WAIT", 1, 2000)
    dead = cluster.owner(_slot(site))

    def serves() -> bool:
        try:
            return Scripts(client)("lua/unlock", [Keys(site).lease], "mine") in {0, 1}
        except StoreError:
            return False

    dead.kill()
    until(serves, "a replica serves the slot")
    dead.tend()
    until(lambda: all(map(cluster.serves, cluster.servers)), "the former master follows")


def test_a_node_of_a_cluster_is_refused_as_the_only_server(cluster: Cluster) -> None:
    with (
        connect(f"redis://127.0.0.1:{cluster.servers[0].port}", 2) as lone,
        pytest.raises(StoreError, match=r"write redis\+cluster://"),
    ):
        check_settings(lone)


def test_every_master_is_held_to_the_settings(cluster: Cluster, client: redis.Redis) -> None:
    check_settings(client)
    last = cluster.owner(16_383)
    last.ask("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
    try:
        with pytest.raises(UnsafeStoreError, match="allkeys-lru"):
            check_settings(client)
    finally:
        last.ask("CONFIG", "SET", "maxmemory-policy", "noeviction")


def test_a_write_on_a_slot_that_was_moved_is_confirmed_by_the_new_node(
    cluster: Cluster, client: redis.Redis
) -> None:
    site = SITES[3]
    touch = ("EXPIRE", Keys(site).seen("none"), 1)
    confirmed = ConfirmedScripts(client, ReplicaWait(1, 2000))
    client.set(Keys(site).lease, "mine")
    cluster.move(_slot(site), _another(cluster, _slot(site)))

    assert confirmed.run(PipelinedScript("lua/unlock", [Keys(site).lease], ("mine",)), touch) == 1
    confirmed = ConfirmedScripts(client, ReplicaWait(2, 50))
    with pytest.raises(StoreDownError, match="1 of 2 replicas"):
        confirmed.run(PipelinedScript("lua/unlock", [Keys(site).lease], ("mine",)), touch)
