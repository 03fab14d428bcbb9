"""The master that sentinels name: real servers, a master that is killed, frozen and demoted."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from shared.errors import StoreDownError, StoreError
from shared.events.event import Event, parse
from shared.store.client import Scripts
from shared.store.connection import connect
from shared.store.inbox.inbox import Inbox
from shared.store.server_settings import check_settings
from shared.store.servers.replica_wait import ReplicaWait
from tests.faults.parts import until
from tests.integration.rig import BASE, Rig, settings
from tests.scale.servers import Server, Watched, online_replicas, programs


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    with Watched(tmp_path_factory.mktemp("watched"), programs()[-1]) as running:
        yield running


@pytest.fixture
def client(watched: Watched) -> Iterator[redis.Redis]:
    with connect(watched.url, 2) as client:
        yield client


@pytest.fixture
def event(tmp_path: Path) -> Event:
    site = settings(tmp_path).sites["demo"]
    return parse({"type": "upsert", "loc": f"{BASE}a", "section": "pages"}, site.rules)


def _page(path: str) -> dict[str, str]:
    return {"type": "upsert", "loc": path, "section": "pages"}


def _serves(client: redis.Redis) -> bool:
    try:
        return Scripts(client)("lua/unlock", ["{demo}:lease"], "mine") == 0
    except StoreError:
        return False


def _offset(server: Server) -> int:
    return int(server.ask("INFO", "replication")["master_repl_offset"])


def test_writes_go_to_the_master(watched: Watched, client: redis.Redis) -> None:
    client.set("{demo}:shape", "here")

    assert watched.master.ask("GET", "{demo}:shape") == b"here"
    assert client.info("replication")["role"] == "master"


def test_a_dead_sentinel_is_passed_over(watched: Watched) -> None:
    first = watched.sentinels[0]
    first.tell(signal.SIGSTOP)
    try:
        with connect(watched.url, 2) as client:
            assert client.ping()
    finally:
        first.tell(signal.SIGCONT)


def test_without_sentinels_the_store_is_down() -> None:
    with (
        connect("redis+sentinel://127.0.0.1:1/sitemapd/0", 1) as client,
        pytest.raises(StoreDownError),
    ):
        Scripts(client)("lua/unlock", ["{demo}:lease"], "mine")


def test_a_master_that_nobody_knows_is_down(watched: Watched) -> None:
    with (
        connect(watched.url.replace("/sitemapd/", "/another/"), 1) as client,
        pytest.raises(StoreDownError, match="another"),
    ):
        Scripts(client)("lua/unlock", ["{demo}:lease"], "mine")


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
def test_after_a_failover_the_new_master_is_written_to(
    watched: Watched, client: redis.Redis, how: signal.Signals
) -> None:
    assert _serves(client)
    former = watched.master

    former.tell(how)
    try:
        # The first sentinel may name it to the client before the others know.
        until(lambda: watched.master is not former, "most sentinels name the new master")
        until(lambda: _serves(client), "the new master is written to")
    finally:
        former.tend() if how == signal.SIGKILL else former.tell(signal.SIGCONT)
    until(lambda: former.ask("INFO", "replication")["role"] == "slave", "the former master follows")
    assert _serves(client)


def test_a_commit_that_a_failover_loses_is_repeated_and_stops_nothing(
    watched: Watched, client: redis.Redis, tmp_path: Path
) -> None:
    rig = Rig(client, tmp_path / "public", name="failed-over")
    until(lambda: online_replicas(watched.master) == 2, "both replicas follow")
    rig.do(_page("kept"))
    until(lambda: len(set(map(_offset, watched.data))) == 1, "both replicas have it")
    former = watched.master
    others = [each for each in watched.data if each is not former]
    for other in others:
        other.tell(signal.SIGKILL)
    rig.do(_page("lost"))
    assert rig.listed().keys() == {f"{BASE}kept", f"{BASE}lost"}

    former.tell(signal.SIGKILL)
    for other in others:
        other.tend()
    until(lambda: _serves(client), "a replica without the commit is the master", 60)
    assert not rig.state.known_run().publishes > 1
    rig.do(_page("next"))
    assert rig.listed().keys() == {f"{BASE}kept", f"{BASE}next"}
    rig.do(_page("lost"))
    assert rig.listed().keys() == {f"{BASE}{name}" for name in ("kept", "lost", "next")}

    former.tend()
    until(lambda: former.ask("INFO", "replication")["role"] == "slave", "the former master follows")


def test_no_file_names_an_identity_that_replicas_lack(
    watched: Watched, client: redis.Redis, tmp_path: Path
) -> None:
    unasked = Rig(client, tmp_path / "unasked", name="unasked")
    with connect(watched.url, 2, 1) as confirmed:
        until(lambda: online_replicas(watched.master) == 2, "both replicas follow")
        rig = Rig(confirmed, tmp_path / "public", name="unconfirmed")
        former = watched.master
        others = [each for each in watched.data if each is not former]
        for other in others:
            other.tell(signal.SIGKILL)
        with pytest.raises(StoreDownError, match="0 of 1 replicas"):
            rig.do(_page("lost"))
        assert rig.state.known_run().ident
        assert not rig.listed()
        unasked.do(_page("first"))
        assert unasked.listed(), "where no replica must confirm, none is waited for"

        former.tell(signal.SIGKILL)
        for other in others:
            other.tend()
        until(lambda: _serves(confirmed), "a replica without the identity is the master", 60)
        assert not rig.state.known_run().ident
        until(lambda: online_replicas(watched.master) == 1, "the other replica follows", 60)
        rig.do(_page("next"))
        assert rig.listed().keys() == {f"{BASE}next"}

        former.tend()
        until(lambda: former.ask("INFO", "replication")["role"] == "slave", "it follows")


def test_a_former_master_that_sentinels_still_name_is_left_though_it_knows_no_script(
    watched: Watched, client: redis.Redis, event: Event
) -> None:
    assert _serves(client)
    until(lambda: online_replicas(watched.master) == 2, "both replicas follow")
    former, other = watched.master, next(e for e in watched.data if e is not watched.master)
    # By hand: sentinels would close the connection. One alone names the master that it knows.
    for sentinel in watched.sentinels[1:]:
        sentinel.tell(signal.SIGSTOP)
    try:
        former.ask("SCRIPT", "FLUSH")
        former.ask("REPLICAOF", "127.0.0.1", other.port)
        with pytest.raises(StoreDownError, match=r"slave|no master any more"):
            Inbox(client, "demo").accept([event])
        with pytest.raises(StoreDownError, match="no master any more"):
            Inbox(client, "demo").accept([event])
        former.ask("REPLICAOF", "NO", "ONE")
    finally:
        for sentinel in watched.sentinels[1:]:
            sentinel.tell(signal.SIGCONT)
    until(lambda: _serves(client), "the master is written to again", 60)
    until(lambda: online_replicas(watched.master) == 2, "both replicas follow", 60)


def test_a_replica_is_refused_as_the_store(watched: Watched) -> None:
    replica = next(each for each in watched.data if each is not watched.master)
    with (
        connect(f"redis://127.0.0.1:{replica.port}", 2) as client,
        pytest.raises(StoreError, match="is a replica"),
    ):
        check_settings(client)


@pytest.mark.parametrize("known", [True, False])
def test_a_write_that_too_few_replicas_confirm_is_not_acknowledged(
    watched: Watched, client: redis.Redis, event: Event, known: bool
) -> None:
    site = f"site-{known}".lower()
    if known:
        Inbox(client, site).accept([event], delivery="first")
    others = [each for each in watched.data if each is not watched.master]
    until(lambda: online_replicas(watched.master) == 2, "both replicas follow")
    inbox = Inbox(client, site, ReplicaWait(2, 300))
    others[0].tell(signal.SIGSTOP)
    try:
        with pytest.raises(StoreDownError, match="1 of 2 replicas"):
            inbox.accept([event], delivery="first")
        assert Inbox(client, site, ReplicaWait(1, 300)).accept(
            [event], delivery="first"
        ).status == ("duplicate")
    finally:
        others[0].tell(signal.SIGCONT)

    def repeated() -> bool:
        try:
            return inbox.accept([event], delivery="first").status == "duplicate"
        except StoreDownError:
            return False

    until(repeated, "the repeated delivery is confirmed")
    assert inbox.waiting() == 1
