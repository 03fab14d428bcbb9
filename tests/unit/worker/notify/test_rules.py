"""What answers mean, how long to wait, and which addresses may be asked."""

from __future__ import annotations

import ipaddress
import string
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.store.notify.notification_queue import Breaker
from worker.http.addresses import is_open, is_private
from worker.http.exchange import LONGEST_WAIT_S, OutboundAnswer, excerpt, retry_after
from worker.notify.backoff import LONGEST_S, MOST_REFUSALS, rest_after
from worker.notify.engine import (
    AnswerVerdict,
    NotificationOutcome,
    by_status,
    fields,
)

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
RETRIED = {AnswerVerdict.FAILED, AnswerVerdict.BUSY}


def answer(status: int = 200, body: bytes = b"", **headers: str) -> OutboundAnswer:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return OutboundAnswer(status, named, body)


@given(st.integers(100, 599), st.binary(max_size=300))
def test_only_429_and_what_passes_by_itself_is_tried_again(status: int, body: bytes) -> None:
    """PROTOCOL U5."""
    outcome = by_status(answer(status, body))

    again = status in {408, 425, 429} or status >= 500
    assert (outcome.verdict in RETRIED) is again
    assert outcome.told is (200 <= status < 300)
    assert outcome.detail.isprintable() or not outcome.detail


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0), ("120", 120), (" 120 ", 120), ("999999999999999999999", LONGEST_WAIT_S),
        (format_datetime(NOW + timedelta(minutes=5), usegmt=True), 300),
        (format_datetime(NOW - timedelta(minutes=5), usegmt=True), 0),
        (format_datetime(NOW + timedelta(days=400), usegmt=True), LONGEST_WAIT_S),
        ("", None), ("-5", None), ("soon", None), ("1.5", None), ("\u0663", None),
        (f"1 Nov 54 1:{'5' * 70}", None),
    ],
)  # fmt: skip
def test_retry_after_is_seconds_or_a_date_within_a_day(text: str, seconds: float | None) -> None:
    assert retry_after(answer(retry_after=text).headers, NOW) == seconds


@given(st.text())
def test_any_retry_after_is_a_wait_or_none(text: str) -> None:
    found = retry_after(answer(retry_after=text).headers, NOW)

    assert found is None or 0 <= found <= LONGEST_WAIT_S


@given(st.binary())
def test_any_body_has_members_or_none_and_an_excerpt_for_a_line(body: bytes) -> None:
    assert fields(body) is None or isinstance(fields(body), dict)
    assert len(excerpt(body)) <= 200
    assert not set(excerpt(body)) & set("\n\r\x1b")


def test_nested_brackets_are_no_members() -> None:
    assert fields(b"[" * 60_000) is None


OUTCOMES = st.builds(
    NotificationOutcome,
    st.sampled_from(sorted({*AnswerVerdict} - {AnswerVerdict.DONE, AnswerVerdict.PENDING})),
    st.text(string.printable), st.integers(0, 599),
    st.none() | st.floats(0, LONGEST_WAIT_S),
)  # fmt: skip
BEFORE = st.none() | st.builds(
    Breaker, st.integers(0, 99), st.integers(0, 10**13), st.just(""), st.booleans(),
    st.integers(0, MOST_REFUSALS),
)  # fmt: skip


@given(OUTCOMES, BEFORE, st.integers(0, 10**13), st.floats(0, 1))
def test_nobody_is_asked_sooner_than_it_said(
    outcome: NotificationOutcome, before: Breaker | None, now: int, jitter: float
) -> None:
    rest = rest_after(outcome, before, now, jitter)

    assert rest.give_up is (outcome.verdict in {AnswerVerdict.REFUSED, AnswerVerdict.FORBIDDEN})
    assert rest.breaker is not None
    if outcome.verdict in RETRIED:
        assert rest.at == rest.breaker.until >= now + int((outcome.wait or 0) * 1000)
        assert now + 59_000 < rest.at <= now + int(max(LONGEST_S, LONGEST_WAIT_S) * 1500)
    assert rest.breaker.paused is (
        outcome.verdict is AnswerVerdict.FORBIDDEN
        or (
            outcome.verdict is AnswerVerdict.REFUSED
            and (before.refusals if before else 0) + 1 >= MOST_REFUSALS
        )
    )


def test_jitter_spreads_what_failed_together() -> None:
    failed = NotificationOutcome(AnswerVerdict.FAILED)

    assert {rest_after(failed, None, 0, jitter).at for jitter in (0.0, 0.5, 1.0)} == {
        60_000, 75_000, 90_000,
    }  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        "127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.0.1", "169.254.169.254", "0.0.0.0",
        "100.64.0.1", "192.0.2.1", "198.18.0.1", "203.0.113.1", "224.0.0.1", "239.1.1.1",
        "240.0.0.1", "255.255.255.255", "192.88.99.1", "::", "::1", "::ffff:8.8.8.8",
        "::ffff:127.0.0.1", "::127.0.0.1", "64:ff9b::808:808", "64:ff9b::7f00:1",
        "64:ff9b:1::1", "2002:7f00:1::", "2002:808:808::1", "2001::1", "2001:db8::1", "fc00::1",
        "fd12::1", "fe80::1", "fec0::1", "ff02::1", "ff0e::1",
    ],
)  # fmt: skip
def test_what_is_not_the_open_internet_is_seen(text: str) -> None:
    """RELIABILITY T22: `is_global` is True for some of these (measured)."""
    assert not is_open(ipaddress.ip_address(text))


@pytest.mark.parametrize("text", ["8.8.8.8", "93.184.215.14", "2606:4700::1111", "2a00:1450::5"])
def test_the_open_internet_is_open_and_not_private(text: str) -> None:
    address = ipaddress.ip_address(text)

    assert (is_open(address), is_private(address)) == (True, False)


@pytest.mark.parametrize("text", ["127.0.0.1", "10.1.2.3", "192.168.0.1", "::1", "fd12::1"])
def test_private_networks_are_private(text: str) -> None:
    assert is_private(ipaddress.ip_address(text))


@pytest.mark.parametrize(
    "text", ["169.254.169.254", "fe80::1", "0.0.0.0", "::", "224.0.0.1", "ff02::1", "240.0.0.1"]
)
def test_nobody_allows_where_clouds_keep_their_credentials(text: str) -> None:
    assert not is_private(ipaddress.ip_address(text))


@given(st.ip_addresses())
def test_no_address_is_open_and_private(address: ipaddress.IPv4Address) -> None:
    assert not (is_open(address) and is_private(address))
