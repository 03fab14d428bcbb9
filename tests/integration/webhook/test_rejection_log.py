"""What is refused at the door is noted for the administrator, whatever comes within its bounds."""

from __future__ import annotations

import json
from typing import Any

import redis
from flask.testing import FlaskClient

from shared.config.settings import Settings
from shared.errors import Fault
from shared.store.counting.counters import Counters
from shared.store.keys import REFUSED, Keys
from shared.store.operations.event_log import REFUSED as KIND
from shared.store.operations.event_log import EventLog, LoggedEvent
from tests.integration.conftest import RedisServer, Signer, Wait
from tests.integration.logs import captured
from tests.integration.rig import BASE, check_keys
from webhook import responses
from webhook.app import create_app
from webhook.rejection_log import MOST_FAULTS, MOST_NOTES, RejectionLog

ADDRESS = "/v1/sites/demo/events"
CANARY = "canary-3b7d"


def door(config: Settings, every_s: float = 0.01) -> FlaskClient:
    return create_app(config, refusals=RejectionLog(config, every_s)).test_client()


def refused(store: redis.Redis, site: str = "demo") -> list[LoggedEvent]:
    return [past for past in EventLog(store, site).latest() if past.kind == KIND]


def counts(store: redis.Redis, site: str = "demo") -> dict[str, int]:
    found = Counters(store, site).totals()[0]
    return {name: number for name, number in found.items() if name.startswith("refused:")}


def test_a_refusal_is_noted_with_its_reason_its_request_and_its_first_faults(
    config: Settings, store: redis.Redis, signed: Signer, until: Wait
) -> None:
    body = json.dumps([{"type": "upsert", "loc": f"https://other.example/{n}"} for n in range(9)])
    answer = door(config).post(ADDRESS, data=body.encode(), headers=signed(body.encode()))
    until(lambda: refused(store), "the refusal is noted")

    (past,) = refused(store)
    assert answer.status_code == 422
    assert past.reason == "PROTOCOL L5"
    assert past.said["code"] == "invalid"
    assert past.said["status"] == 422
    assert past.said["request"] == answer.headers["X-Request-Id"]
    assert past.said["delivery"] == "msg_1"
    assert len(past.said["faults"]) == MOST_FAULTS
    assert past.said["faults"][0]["field"] == "loc"
    assert past.said["faults"][0]["rule"] == "PROTOCOL L5"
    assert counts(store) == {"refused:invalid": 1}
    (minute,) = [m for m in Counters(store, "demo").minutes(2) if m.counts]
    assert minute.counts == {"refused:invalid": 1}
    check_keys(store)


def test_of_a_stranger_nothing_is_noted_but_code_reason_and_address(
    config: Settings, store: redis.Redis, signed: Signer, until: Wait
) -> None:
    """RELIABILITY T1, T30."""
    body = json.dumps({"type": "upsert", "loc": f"{BASE}{CANARY}"}).encode()
    headers = signed(body, key=b"x" * 32, ident=CANARY) | {"Authorization": f"Bearer {CANARY}"}
    hook = "/v1/sites/demo/hooks/ghost"
    web = door(config)
    assert web.post(ADDRESS, data=body, headers=headers).status_code == 401
    assert web.post(hook, data=body, headers=headers).status_code == 401
    until(lambda: len(refused(store)) == 2, "both are noted")

    for past in refused(store):
        assert set(past.said) == {"code", "reason", "status", "request", "client"}
        assert past.said["client"] == "127.0.0.1"
    dumped = b"".join(store.dump(key) or b"" for key in store.keys("{demo}*"))
    assert CANARY.encode() not in dumped


def test_a_request_that_is_refused_before_its_site_is_looked_up_is_noted_too(
    config: Settings, store: redis.Redis, until: Wait
) -> None:
    assert door(config).post(ADDRESS, data=b"x", content_type="text/plain").status_code == 415
    until(lambda: counts(store) == {"refused:media-type": 1}, "it is counted")


def test_sites_that_are_not_configured_leave_nothing(
    config: Settings, store: redis.Redis, until: Wait
) -> None:
    web = door(config)
    for _ in range(5):
        assert web.post("/v1/sites/nowhere/events", data=b"{}", content_type="application/json")
    assert web.get("/v1/sites/demo/entries?loc=x").status_code == 401
    assert web.post(ADDRESS, data=b"x", content_type="text/plain").status_code == 415
    until(lambda: refused(store), "the last one is noted")

    assert {key.partition(b"}")[0] for key in store.keys("{*")} == {b"{demo"}
    assert len(refused(store)) == 1


def test_an_attack_is_counted_and_few_of_it_are_noted_and_no_other_is_hidden(
    config: Settings, store: redis.Redis, until: Wait
) -> None:
    """RELIABILITY T13: 20,000 refusals within one second."""
    refusals = RejectionLog(config, every_s=60)
    refusals.note("demo", {"code": "closed", "reason": "first"})
    until(lambda: refused(store), "the thread has begun its wait")
    for n in range(20_000):
        refusals.note("demo", {"code": "unauthorized", "reason": "signature", "request": str(n)})
    refusals.note("demo", {"code": "invalid", "reason": "PROTOCOL L5"})
    refusals.note("tokens", {"code": "invalid", "reason": "PROTOCOL L5"})

    assert max(map(len, refusals._notes.values())) == MOST_NOTES, "memory is bounded, too"
    refusals.flush(store)

    assert counts(store) == {
        "refused:closed": 1, "refused:unauthorized": 20_000, "refused:invalid": 1,
    }  # fmt: skip
    noted = [past.reason for past in refused(store) if past.reason != "first"]
    others = [past.reason for past in refused(store, "tokens")]
    assert len(noted) + len(others) == MOST_NOTES
    assert others == ["PROTOCOL L5"]
    assert noted.count("PROTOCOL L5") == 1


def test_what_was_decided_is_not_pushed_out_and_the_notes_stay_few(
    store: redis.Redis,
) -> None:
    keys = Keys("demo")
    decided: Any = store.xadd(keys.recent, {"ignored": '{"reasons":["kept"]}'})
    pipe = store.pipeline()
    for n in range(3 * REFUSED):
        pipe.xadd(
            keys.refused, {"refused": f'{{"reason":"{n}"}}'}, maxlen=REFUSED, approximate=True
        )
    pipe.execute()
    last = store.xadd(keys.recent, {"ignored": '{"reasons":["newest"]}'})

    assert store.xlen(keys.refused) <= REFUSED + 100
    found = list(EventLog(store, "demo").latest())
    assert (found[0].reason, found[0].at) == ("newest", last.decode())
    assert (found[1].reason, found[-1].reason) == (str(3 * REFUSED - 1), "kept")
    assert found[-1].at == decided.decode()
    places = [tuple(map(int, past.at.split("-"))) for past in found]
    assert places == sorted(places, reverse=True)
    assert [past.at for past in EventLog(store, "demo").latest(found[4].at)] == [
        past.at for past in found[5:]
    ]


def test_a_dead_store_loses_notes_and_nothing_else(
    config: Settings, fragile_redis: RedisServer, until: Wait
) -> None:
    """RELIABILITY F20."""
    changed = config.model_copy(update={"redis_url": fragile_redis.url})
    web = door(changed)
    fragile_redis.kill()
    for _ in range(3):
        answer = web.post(ADDRESS, data=b"x", content_type="text/plain")
        assert answer.status_code == 415
    fragile_redis.start()
    with fragile_redis.client() as client:

        def noted() -> bool:
            web.post(ADDRESS, data=b"x", content_type="text/plain")
            return bool(refused(client))

        until(noted, "refusals are noted again")


def test_a_text_no_store_takes_is_cut_and_escaped(
    config: Settings, store: redis.Redis, until: Wait
) -> None:
    refusals = RejectionLog(config, every_s=0.01)
    fault = Fault("loc\ud800" * 200, "PROTOCOL L3", "x" * 5_000)
    refusals.note("demo", {"code": "invalid", "delivery": "\udfff", "faults": [fault]})
    until(lambda: refused(store), "it is noted")

    (past,) = refused(store)
    assert past.said["delivery"] == "\\udfff"
    assert len(json.dumps(past.said)) < 3_000


def test_f29_a_flood_of_unsigned_requests_has_few_lines(web: FlaskClient) -> None:
    with captured(responses) as logs:
        for _ in range(300):
            web.post("/v1/sites/demo/events", data=b"{}", content_type="application/json")
        web.post("/v1/sites/demo/hooks/nobody", data=b"{}", content_type="application/json")

    lines = [log for log in logs if log["event"] == "answered"]
    assert len(lines) < 40
    assert {log["status"] for log in lines} == {401, 404}
