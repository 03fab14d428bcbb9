"""What the simulation says that each step sends and writes is what it sends and writes."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import redis

from shared.store.keys import Keys
from tests.bench.bed import Bed, bed, server
from tests.bench.corpus import Corpus
from tests.bench.simulate import counts
from tests.bench.simulate.counts import Count

DIGEST = "0123456789abcdef" * 2
EVENTS = 500


@pytest.fixture
def site() -> Iterator[Bed]:
    with server() as client, bed(client, "counted") as made:
        corpus = Corpus()
        made.load(corpus.pages(10_000))
        made.pump.inbox.accept([*Corpus().pages(1)], delivery="warm")
        made.pump.run()
        yield made


def counted(client: redis.Redis, step: Callable[[], object]) -> Count:
    before = _now(client)
    own = _now(client).network - before.network  # what asking for it sends
    before = _now(client)
    step()
    after = _now(client)
    return Count(
        after.commands - before.commands, after.log - before.log,
        after.network - before.network - own,
    )  # fmt: skip


def _now(client: redis.Redis) -> Count:
    found = client.info("all")
    ran = sum(
        each["calls"] for name, each in found.items()
        if name.startswith("cmdstat_") and name != "cmdstat_info"
    )  # fmt: skip
    network = found["total_net_input_bytes"] + found["total_net_output_bytes"]
    return Count(ran, found["aof_current_size"], network)


def near(found: Count, said: Count) -> None:
    assert found.commands == pytest.approx(said.commands, rel=0.15, abs=5)
    assert found.log == pytest.approx(said.log, rel=0.25, abs=700)
    assert found.network == pytest.approx(said.network, rel=0.35, abs=2_500)


@pytest.mark.parametrize("events", [1, EVENTS])
def test_each_step_of_an_event_sends_and_writes_what_is_said(site: Bed, events: int) -> None:
    corpus, inbox = Corpus(), site.pump.inbox
    pages = [*corpus.pages(events)]  # the same as those loaded, for nothing was changed before
    some = [*map(corpus.changed, pages)]
    client = site.client

    delivery = counted(client, lambda: inbox.accept(some, delivery="d", digest=DIGEST))
    batches = []
    read = counted(client, lambda: batches.append(inbox.read("bench", EVENTS)))
    applied = counted(client, lambda: site.pump._process(batches[0]))
    published = counted(client, site.publisher.publish)

    near(delivery, counts.DELIVERY.plus(counts.DELIVERY_EVENT, events))
    near(read, counts.READ.plus(counts.READ_EVENT, events))
    near(applied, counts.APPLY.plus(counts.APPLY_EVENT, events))
    near(
        published._replace(log=0, network=0),
        counts.PASS.plus(counts.PASS_SHARD, 1)._replace(log=0, network=0),
    )
    # The blocks of the changed pages are written anew: one at least, all twenty at most.
    assert 15_000 < published.log < 500_000


def test_the_id_of_a_delivery_takes_the_memory_that_is_said(site: Bed) -> None:
    keys, client = Keys("counted"), site.client
    before = int(client.info("memory")["used_memory"])
    pipe = client.pipeline(transaction=False)
    for number in range(20_000):
        stored = f"{DIGEST} 1795250964623-0 1"
        pipe.set(keys.seen(f"msg_{number:024d}"), stored, ex=counts.SEEN_S)
    pipe.execute()
    each = (int(client.info("memory")["used_memory"]) - before) / 20_000

    assert each == pytest.approx(counts.SEEN_BYTES, rel=0.2)
