"""Each set-up takes events and publishes them, woken by its own broker."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.faults import oracle
from tests.faults.ledger import Ledger
from tests.faults.parts import until
from tests.faults.traffic import Sender
from tests.scale.deployed import Scaled, woken
from tests.scale.rabbitmq import RabbitMq
from tests.scale.servers import Cluster, Watched, programs


@pytest.fixture
def ledger() -> Ledger:
    return Ledger()


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def _publish(system: Scaled, ledger: Ledger, events: int = 100) -> None:
    """Send so many events, and wait until the files say what was acknowledged."""
    sender = Sender(system, ledger, 1, 0.02, ["delivery"])
    sender.start()
    try:
        until(lambda: ledger.acked >= events, f"{events} events are accepted")
    finally:
        sender.stop()
        sender.join()
    until(
        lambda: system.quiet() and not oracle.lost(system, ledger),
        "the files say what was acknowledged", 30, system.work,
    )  # fmt: skip


def test_a_cluster_keeps_the_state_and_rabbitmq_wakes(
    stack: ExitStack, ledger: Ledger, tmp_path: Path
) -> None:
    store = stack.enter_context(Cluster(tmp_path / "redis", programs()[0]))
    broker = stack.enter_context(RabbitMq(tmp_path / "rabbitmq"))
    system = stack.enter_context(
        Scaled(tmp_path / "home", store, {"SITEMAPD_BROKER_URL": broker.url})
    )

    _publish(system, ledger)

    assert not oracle.wrong(system, ledger)
    assert woken(broker.url) > 0
    broker.kill()
    _publish(system, ledger, 200)  # found by the sweeps
    broker.start()
    until(lambda: woken(broker.url) > 0, "the workers come back to the broker", 60)


def test_sentinels_name_the_master_of_the_state_and_of_the_broker(
    stack: ExitStack, ledger: Ledger, tmp_path: Path
) -> None:
    store = stack.enter_context(Watched(tmp_path / "redis", programs()[-1]))
    system = stack.enter_context(Scaled(tmp_path / "home", store))
    broker = ";".join(f"sentinel://127.0.0.1:{each.port}/0" for each in store.sentinels)

    _publish(system, ledger)

    assert not oracle.wrong(system, ledger)
    before = woken(broker)
    assert before > 0
    former = store.master
    former.kill()
    until(lambda: store.master is not former, "a replica is promoted")
    until(system.ready, "events are taken again", 60)
    until(lambda: woken(broker) > 0, "the workers are at the broker again", 60)
    _publish(system, Ledger())
