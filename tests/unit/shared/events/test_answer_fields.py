"""What a sender says its page answers with (PROTOCOL L8)."""

from __future__ import annotations

from typing import Any

import pytest

from shared.errors import Fault, InvalidError
from shared.events import answer_fields
from shared.events.event import PLAIN_SCHEMA, SCHEMA, Event, SchemaError, parse
from tests.unit.shared.events.test_event import LOC, RULES, UPSERT

THERE = "https://www.example.com/b"


def told(**members: Any) -> tuple[Event, list[Fault]]:
    warnings: list[Fault] = []
    return parse(UPSERT | members, RULES, warnings=warnings), warnings


@pytest.mark.parametrize("status", [200, 404, 410, 301, 308])
def test_an_answer_that_is_clear_needs_no_warning(status: int) -> None:
    event, warnings = told(status=status)

    assert event.status == status
    assert warnings == []


@pytest.mark.parametrize("status", [100, 204, 302, 307, 401, 403, 429, 500, 503, 599])
def test_an_answer_that_may_pass_is_taken_with_a_warning(status: int) -> None:
    event, (warning,) = told(status=status)

    assert answer_fields.gone(event.status, event.redirect_to) == ""
    assert (warning.field, warning.rule) == ("status", "PROTOCOL L8")


@pytest.mark.parametrize(
    ("members", "field"),
    [
        ({"status": "404"}, "status"), ({"status": True}, "status"), ({"status": 99}, "status"),
        ({"status": 600}, "status"), ({"status": 404.0}, "status"), ({"status": []}, "status"),
        ({"redirect_to": "/b"}, "redirect_to"), ({"redirect_to": 3}, "redirect_to"),
        ({"redirect_to": LOC}, "redirect_to"), ({"redirect_to": "ftp://a.b/"}, "redirect_to"),
        ({"redirect_to": THERE, "status": 200}, "redirect_to"),
        ({"redirect_to": THERE, "status": 404}, "redirect_to"),
    ],
)  # fmt: skip
def test_what_is_no_answer_is_refused(members: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidError) as refused:
        told(**members)

    assert [fault.field for fault in refused.value.faults] == [field]


def test_a_resync_has_no_answer() -> None:
    with pytest.raises(InvalidError):
        parse({"type": "resync", "status": 404}, RULES)


@pytest.mark.parametrize(
    ("members", "why"),
    [
        ({}, ""), ({"status": None, "redirect_to": None}, ""), ({"status": 200}, ""),
        ({"status": 404}, "it answers 404"), ({"status": 410}, "it answers 410"),
        ({"status": 301}, "it answers 301, moved for good"),
        ({"redirect_to": THERE}, f"moved for good to {THERE}"),
        ({"status": 308, "redirect_to": THERE}, f"moved for good to {THERE}"),
        ({"status": 307, "redirect_to": THERE}, ""),
    ],
)  # fmt: skip
def test_only_what_is_gone_for_good_is_not_listed(members: dict[str, Any], why: str) -> None:
    event, _ = told(**members)

    assert answer_fields.gone(event.status, event.redirect_to) == why


def test_an_event_with_an_answer_waits_for_a_worker_that_knows_it() -> None:
    event, _ = told(status=301, redirect_to="HTTPS://Example.com")
    plain, _ = told()

    assert event.redirect_to == "https://example.com/"
    assert Event.load(event.dump()) == event
    assert f'{{"v":{SCHEMA},'.encode() in event.dump()
    assert f'{{"v":{PLAIN_SCHEMA},'.encode() in plain.dump()


def test_a_stored_answer_that_nobody_accepted_is_not_read() -> None:
    with pytest.raises(SchemaError):
        Event.load(b'{"v":3,"type":"upsert","loc":"https://www.example.com/a","status":7}')
    with pytest.raises(SchemaError):
        Event.load(b'{"v":3,"type":"upsert","loc":"https://www.example.com/a","status":"404"}')
