"""The simulation loses nothing, keeps to its resources, and agrees with formulas and figures."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from functools import cache
from pathlib import Path
from statistics import mean

import pytest
import simpy
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.bench.simulate.__main__ import main
from tests.bench.simulate.costs import ROWS, Costs
from tests.bench.simulate.counts import Count
from tests.bench.simulate.figures import MEASURED, Figures, MissingRowError
from tests.bench.simulate.ladder import REMEDIES, ladder
from tests.bench.simulate.model import Model
from tests.bench.simulate.outcome import FULL, MEMORY, WEB, needed_memory, simulate
from tests.bench.simulate.points import points
from tests.bench.simulate.prices import OFFERS, Offer, bill, cheapest
from tests.bench.simulate.scenario import Delivery, Scenario, Zipf, deliveries
from tests.bench.simulate.servers import Chance, Pool, Redis, Steps

WRITE = Count(1, 100, 0)
FIGURES = Figures.load(MEASURED)
COSTS = Costs.of(FIGURES)
SMALL = Scenario(sites=20, urls=200_000, events=100, redis_gb=512, seconds=3.0, warm=0.0)
SCENARIOS = st.builds(
    Scenario, sites=st.integers(1, 30), urls=st.sampled_from([20_000, 500_000]),
    events=st.integers(1, 300), per_delivery=st.sampled_from([1, 2.5, 50]),
    new=st.floats(0, 1), bursts=st.floats(0, 1), uniform=st.booleans(), gzip=st.booleans(),
    interval=st.sampled_from([0.1, 1.0]), shard_urls=st.sampled_from([500, 2_000, 10_000]),
    web=st.integers(1, 3), workers=st.integers(1, 4), threads=st.integers(1, 4),
    masters=st.integers(1, 3), cores=st.sampled_from([0, 2]),
    seconds=st.just(2.0), warm=st.just(0.0), seed=st.integers(0, 1_000),
)  # fmt: skip


@given(SCENARIOS)
@settings(max_examples=25, deadline=None)
def test_every_event_that_was_posted_is_visible_in_the_end(scenario: Scenario) -> None:
    model = Model(scenario, COSTS)
    sent = [*deliveries(scenario, model.zipf, model.chance.random)]
    model.run(sent, until_rest=True)

    assert model.visible == model.accepted == model.posted == sum(each.events for each in sent)
    assert len(model.lags) == model.visible
    assert not model.unanswered
    assert not any(site.inbox or site.dirty or site.awake for site in model.sites)


@given(SCENARIOS)
@settings(max_examples=25, deadline=None)
def test_no_resource_is_busier_than_it_can_be_and_no_event_faster_than_its_steps(
    scenario: Scenario,
) -> None:
    exact = replace(COSTS, spread=1.0, flush_spread=1.0)
    model = Model(scenario, exact)
    model.run(deliveries(scenario, model.zipf, model.chance.random), until_rest=True)

    pools = [model.web, *model.threads, *model.disks, *(w.interpreter for w in model.workers)]
    pools += [pool for redis in model.redis for pool in (redis.core, redis.log)]
    assert all(0 <= pool.share() <= 1 + 1e-9 for pool in pools)
    # Of each event: the web process, decision, pass; flushes of both logs, file and directory.
    least = COSTS.deliver_s + COSTS.decide_s + COSTS.turn_s + COSTS.shard_s + 4 * COSTS.flush_s
    assert all(lag >= least for _, lag in model.lags)


@given(SCENARIOS)
@settings(max_examples=15, deadline=None)
def test_more_workers_do_not_make_events_later(scenario: Scenario) -> None:
    scenario = replace(scenario, cores=0)
    lags = []
    for workers in (1, 4):
        model = Model(replace(scenario, workers=workers), COSTS)
        sent = [*deliveries(scenario, model.zipf, Chance(scenario.seed).random)]
        model.run(sent, until_rest=True)
        lags.append(mean(lag for _, lag in model.lags) if model.lags else 0.0)

    # Each worker looks at all sites, and publish passes come at other moments.
    assert lags[1] <= lags[0] * 1.25 + scenario.interval


@pytest.mark.parametrize("load", [0.3, 0.6, 0.8])
def test_one_server_with_random_arrivals_waits_as_the_formula_of_m_m_1_says(load: float) -> None:
    env, chance, stays = simpy.Environment(), Chance(7).random, list[float]()
    pool = Pool(env, "one", 1)

    def stay() -> Steps:
        began = env.now
        yield from pool.serve(chance.expovariate(1.0))
        stays.append(env.now - began)

    def arrive() -> Steps:
        for _ in range(25_000):
            yield env.timeout(chance.expovariate(load))
            env.process(stay())

    env.process(arrive())
    env.run()

    assert mean(stays) == pytest.approx(1 / (1 - load), rel=0.12)
    assert pool.share() == pytest.approx(load, rel=0.05)


def test_writes_that_wait_together_share_one_flush_of_the_log() -> None:
    env = simpy.Environment()
    redis = Redis(env, Chance(1), command_s=0.0, flush_s=1.0, write_s=0.0)
    answered = list[float]()
    for _ in range(50):
        redis.call(WRITE).callbacks.append(lambda _: answered.append(env.now))
    env.run()

    assert answered == [1.0] * 50


def test_a_read_waits_for_no_flush() -> None:
    env = simpy.Environment()
    redis = Redis(env, Chance(1), command_s=0.25, flush_s=1.0, write_s=0.0)
    answer = redis.call(WRITE._replace(log=0))
    env.run(answer)

    assert env.now == 0.25


@cache
def held() -> dict[str, float]:
    return {point.name: point.error for point in points(FIGURES, COSTS)}


@pytest.mark.parametrize(
    ("name", "most"),
    [
        ("POST to visible, idle, p50", 0.15),
        ("POST to visible at 998 events/s, p50", 0.10),
        ("POST to visible on a quiet site beside it, p50", 0.40),
        ("a backlog over 10 files of 10,000 URLs", 0.25),
        ("a backlog over 1,000 files of 200 URLs", 0.30),
        # Far ends are those of a machine that others use as well.
        ("POST to visible, idle, p99", 0.65),
        ("the same, p99", 0.60),
    ],
)
def test_the_model_is_as_near_to_the_committed_figures_as_is_said(name: str, most: float) -> None:
    assert abs(held()[name]) <= most


def test_a_simulation_of_one_seed_is_always_the_same() -> None:
    assert simulate(SMALL, COSTS) == simulate(SMALL, COSTS)
    assert simulate(SMALL, COSTS) != simulate(replace(SMALL, seed=2), COSTS)


@given(SCENARIOS)
@example(replace(SMALL, events=9, per_delivery=1, bursts=1.0))
@settings(max_examples=50)
def test_a_load_has_the_events_that_it_promises_in_the_order_of_time(scenario: Scenario) -> None:
    scenario = replace(scenario, seconds=30.0)
    zipf, chance = Zipf(scenario.sites), Chance(scenario.seed).random
    sent = [*deliveries(scenario, zipf, chance)]

    assert [each.at for each in sent] == sorted(each.at for each in sent)
    assert all(0 <= each.at <= 30 and 0 <= each.site < scenario.sites for each in sent)
    expected = scenario.events * 30
    spread = 6 * math.sqrt(expected * scenario.per_delivery) + scenario.per_delivery
    assert abs(sum(each.events for each in sent) - expected) <= spread


def test_zipf_draws_each_rank_as_often_as_it_says() -> None:
    zipf, chance = Zipf(10), Chance(3).random
    drawn = [zipf.draw(chance, 5) for _ in range(20_000)]

    assert sum(zipf.share(rank, 5) for rank in range(5)) == pytest.approx(1)
    for rank in range(5):
        assert drawn.count(rank) / 20_000 == pytest.approx(zipf.share(rank, 5), rel=0.1)


def test_one_web_process_breaks_first_when_single_events_exceed_what_it_takes() -> None:
    found = simulate(replace(SMALL, events=2 / COSTS.deliver_s, seconds=2.0), COSTS)

    assert found.breaks[0] == WEB
    assert found.shares[WEB] > FULL


def test_the_ladder_ends_where_nothing_breaks_at_the_full_load() -> None:
    given_ = replace(SMALL, events=900)
    rungs = [*ladder(given_, COSTS, steps=(0.1, 1.0))]

    assert [rung.outcome.scenario.events for rung in rungs] == sorted(
        rung.outcome.scenario.events for rung in rungs
    )
    assert rungs[-1].outcome.scenario.events == 900
    assert WEB in {name for rung in rungs for name in rung.breaks}
    assert not rungs[-1].breaks
    assert all(rung.remedies for rung in rungs if rung.breaks)


def test_each_resource_has_a_remedy() -> None:
    assert {*simulate(SMALL, COSTS).shares} <= {*REMEDIES}


def test_ids_of_deliveries_are_kept_for_a_week() -> None:
    one = needed_memory(replace(SMALL, events=100, per_delivery=1, mean=1.0), COSTS)
    ten = needed_memory(replace(SMALL, events=100, per_delivery=10, mean=1.0), COSTS)

    assert one["ids of deliveries, for a week"] == 100 * 7 * 86_400 * 148
    assert ten["ids of deliveries, for a week"] * 10 == one["ids of deliveries, for a week"]


def test_memory_that_exceeds_the_masters_breaks() -> None:
    found = simulate(replace(SMALL, urls=400e6, redis_gb=4, seconds=1.0), COSTS)

    assert MEMORY in found.breaks


@pytest.mark.parametrize("offer", OFFERS, ids=lambda offer: offer.name)
def test_a_bill_grows_with_the_machines(offer: Offer) -> None:
    small = simulate(replace(SMALL, redis_gb=16), COSTS)
    large = replace(small, scenario=replace(small.scenario, masters=4, workers=40, web=40))
    sums = [sum(item.price for item in bill(each, offer, 38.0) or []) for each in (small, large)]

    assert 0 < sums[0] < sums[1]


def test_memory_is_not_spread_over_machines() -> None:
    hetzner = OFFERS[1]

    assert cheapest(hetzner, 2, 33) is None
    assert cheapest(hetzner, 64, 8) is not None


@pytest.mark.parametrize("name", ROWS)
def test_a_missing_row_names_the_part_of_the_benchmark(name: str) -> None:
    document = json.loads(MEASURED.read_text())
    lost = Figures(document).row(ROWS[name])["name"]
    kept = [row for row in document["figures"] if row["name"].split(",")[0] != lost.split(",")[0]]

    with pytest.raises(MissingRowError, match=f'make bench ARGS="{ROWS[name].part}"'):
        Costs.of(Figures(document | {"figures": kept}))


def test_the_command_prints_its_table_and_writes_the_same_as_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "out.json"
    options = "--sites 3 --urls 30e3 --events 20 --redis-gb 128 --no-ladder"
    assert main([*options.split(), "--json", str(path)]) == 0

    said = capsys.readouterr().out
    document = json.loads(path.read_text(), parse_constant=pytest.fail)
    assert "held against the benchmark" in said
    assert "30,000 URLs, 3 sites, 20 events/s" in said
    assert {point["name"] for point in document["points"]} == {*held()}
    assert document["given"]["month"].keys() == {offer.name for offer in OFFERS}


def test_the_command_says_which_figures_are_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "bench-results.json"
    path.write_text(json.dumps({"machine": {}, "figures": []}))

    assert main(["--figures", str(path)]) == 2
    assert 'make bench ARGS="latency"' in capsys.readouterr().err


@pytest.mark.parametrize("wrong", ["--events 0", "--workers -1", "--hosts 2", "--urls nan"])
def test_the_command_refuses_what_cannot_be_simulated(
    wrong: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(wrong.split())

    assert "--" + wrong.split(maxsplit=1)[0].strip("-") in capsys.readouterr().err


def test_an_idle_site_sees_its_event_as_soon_as_its_steps_allow() -> None:
    model = Model(replace(SMALL, sites=1, cores=0), COSTS)
    model.run([Delivery(0.0, 0, 1)], until_rest=True)

    assert model.lags[0][1] < 0.1
