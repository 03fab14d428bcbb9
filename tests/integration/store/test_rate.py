"""One site's flood is held back, and costs no other site and no lawful burst (RELIABILITY T13)."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
import redis
from flask.testing import FlaskClient
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shared.config.settings import Settings
from shared.events.event import Event
from shared.store.inbox.inbox import AcceptResult, Inbox
from shared.store.keys import BURST_S
from tests.integration.rig import check_keys
from webhook.app import create_app

RATE = 0.05
"""Events a second: one in 20 s, which no slow machine takes for the time between two requests."""
BURST = int(RATE * BURST_S)
KEY = "{demo}:rate"
EVENT = Event("delete", "https://www.example.com/a")
UPSERT = json.dumps({"type": "upsert", "loc": "https://www.example.com/a"}).encode()
ADDRESS = "/v1/sites/{}/events"
HOUR_S = 3600


@pytest.fixture
def inbox(store: redis.Redis) -> Inbox:
    return Inbox(store, "demo")


@pytest.fixture
def slow_web(config: Settings, store: redis.Redis) -> FlaskClient:  # noqa: ARG001
    """The application where each site may send few events."""
    sites = {name: site.model_copy(update={"rate": RATE}) for name, site in config.sites.items()}
    return create_app(config.model_copy(update={"sites": sites})).test_client()


def send(inbox: Inbox, count: int = 1, *, rate: float = RATE, delivery: Any = None) -> AcceptResult:
    return inbox.accept([EVENT] * count, rate=rate, delivery=delivery, digest="d")


def pass_time(store: redis.Redis, seconds: float) -> None:
    """What the bucket says `seconds` later; negative: after the clock was set back."""
    since, debt = store.get(KEY).decode().split()
    store.set(KEY, f"{int(since) - round(seconds * 1e6)} {debt}", keepttl=True)


def test_a_full_bucket_is_taken_at_once_and_one_event_more_is_not(store, inbox):
    taken = [send(inbox).status for _ in range(BURST)]
    more = send(inbox)

    assert taken == ["accepted"] * BURST
    assert (more.status, more.ids, more.wait) == ("limited", [], math.ceil(1 / RATE))
    assert store.xlen("{demo}:inbox") == BURST


def test_a_delivery_is_taken_whole_or_not_at_all(store, inbox):
    send(inbox, BURST - 2)

    assert send(inbox, 3).status == "limited"
    assert send(inbox, 2).status == "accepted"
    assert store.xlen("{demo}:inbox") == BURST


def test_a_delivery_larger_than_the_bucket_is_taken_when_that_is_full_and_paid_for(store, inbox):
    large = send(inbox, 10 * BURST)
    after = send(inbox)
    pass_time(store, 9 * BURST / RATE + 1)

    assert (large.status, after.status) == ("accepted", "limited")
    assert after.wait == math.ceil((9 * BURST + 1) / RATE)
    assert send(inbox).status == "limited"
    pass_time(store, 1 / RATE)
    assert send(inbox).status == "accepted"


def test_a_delivery_larger_than_the_bucket_waits_for_a_full_one(store, inbox):
    send(inbox)
    refused = send(inbox, BURST + 1)

    assert (refused.status, refused.wait) == ("limited", math.ceil(1 / RATE))
    pass_time(store, refused.wait)
    assert send(inbox, BURST + 1).status == "accepted"


def test_a_delivery_sent_again_costs_nothing_and_is_told_it_was_taken(store, inbox):
    for number in range(BURST):
        send(inbox, delivery=f"m{number}")
    owed = store.get(KEY)

    assert send(inbox, delivery="m0").status == "duplicate"
    assert send(inbox, delivery="new").status == "limited"
    assert store.get(KEY) == owed
    assert not store.exists("{demo}:seen:new")


def test_what_is_refused_for_other_reasons_costs_nothing(store, inbox):
    send(inbox)
    owed = store.get(KEY)

    assert inbox.accept([EVENT], rate=RATE, most=1).status == "full"
    assert store.get(KEY) == owed


@pytest.mark.parametrize("back", [1, HOUR_S, 24 * HOUR_S])
def test_a_clock_set_back_makes_nobody_wait_longer(store, inbox, back):
    send(inbox, BURST)
    before = send(inbox).wait
    pass_time(store, -back)

    assert send(inbox).wait == before
    pass_time(store, before)
    assert send(inbox).status == "accepted"


def test_a_clock_set_forward_gives_a_full_bucket_and_no_more(store, inbox):
    send(inbox, BURST)
    pass_time(store, 24 * HOUR_S)

    assert [send(inbox).status for _ in range(BURST + 1)] == ["accepted"] * BURST + ["limited"]


def test_the_bucket_is_forgotten_when_it_is_full_again(store, inbox):
    send(inbox, 2)
    check_keys(store)

    assert 0 < store.pttl(KEY) <= 2 / RATE * 1000
    store.delete(KEY)
    assert send(inbox, BURST).status == "accepted"


def test_a_site_without_a_limit_has_no_bucket(store, inbox):
    assert send(inbox, 5_000, rate=0).status == "accepted"
    assert not store.exists(KEY)


def test_a_limit_that_is_lowered_blocks_nobody_for_longer_than_the_old_one(inbox):
    send(inbox, 60_000, rate=500)

    assert send(inbox, rate=1).wait <= BURST_S + 1


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    steps=st.lists(st.tuples(st.integers(1, 3 * BURST), st.integers(0, 200)), max_size=12),
    rate=st.sampled_from([RATE, 0.0101]),
)
def test_after_the_seconds_told_it_fits_and_never_before(store, steps, rate):
    """Any deliveries, with any pauses between them, against a bucket in exact arithmetic."""
    store.flushall()
    inbox, burst, tokens = Inbox(store, "demo"), max(1.0, rate * BURST_S), math.inf
    for count, pause in steps:
        if store.exists(KEY):
            pass_time(store, pause)
        tokens = min(burst, tokens + pause * rate)
        fits = tokens >= min(count, burst) - 0.5 * rate  # within half a second of machine time
        answer = send(inbox, count, rate=rate)
        if answer.status == "limited":
            missing = (min(count, burst) - tokens) / rate
            assert answer.wait >= 1
            assert math.ceil(missing) - 2 <= answer.wait <= math.ceil(missing + 1e-3)
            pass_time(store, answer.wait)
            tokens = min(burst, tokens + answer.wait * rate)
            assert send(inbox, count, rate=rate).status == "accepted"
        else:
            assert fits or tokens + 5 * rate >= min(count, burst)
        tokens -= count


class TestOverHttp:
    def test_a_flood_is_answered_429_and_leaves_no_trace(self, slow_web, signed, unchanged):
        body = b"[" + b",".join([UPSERT] * BURST) + b"]"
        assert (
            slow_web.post(ADDRESS.format("demo"), data=body, headers=signed(body)).json["accepted"]
            == BURST
        )
        with unchanged():
            refused = slow_web.post(
                ADDRESS.format("demo"), data=UPSERT, headers=signed(UPSERT, ident="m2")
            )
            again = slow_web.post(ADDRESS.format("demo"), data=body, headers=signed(body))

        assert (refused.status_code, refused.json["code"]) == (429, "rate-limited")
        assert refused.content_type == "application/problem+json"
        assert refused.headers["Retry-After"] == str(math.ceil(1 / RATE))
        assert (again.status_code, again.json["duplicate"]) == (200, True)

    def test_one_site_does_not_use_up_the_rate_of_another(self, slow_web, signed):
        body = b"[" + b",".join([UPSERT] * 1_000) + b"]"
        slow_web.post(ADDRESS.format("demo"), data=body, headers=signed(body))
        answers = [
            slow_web.post(ADDRESS.format(site), data=UPSERT, headers=signed(UPSERT, ident="m"))
            for site in ("demo", "rotating")
        ]

        assert [answer.status_code for answer in answers] == [429, 202]

    def test_who_is_not_known_or_sends_nonsense_uses_up_nothing(self, slow_web, signed, store):
        for number in range(2 * BURST):
            forged = signed(UPSERT, ident=f"f{number}", key=b"x" * 32)
            assert (
                slow_web.post(ADDRESS.format("demo"), data=UPSERT, headers=forged).status_code
                == 401
            )
            wrong = signed(b"{}", ident=f"w{number}")
            assert (
                slow_web.post(ADDRESS.format("demo"), data=b"{}", headers=wrong).status_code == 422
            )

        assert not store.exists(KEY)
        genuine = slow_web.post(ADDRESS.format("demo"), data=UPSERT, headers=signed(UPSERT))
        assert genuine.status_code == 202
