"""One line of an access log: what is read of it, whatever it is."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from shared.crawls.crawlers import ENGINES, engine_of
from shared.crawls.log_lines import LoggedRequest, parse
from tests.unit.shared.crawls.crawling import (
    BINGBOT,
    BROWSER,
    GOOGLEBOT,
    caddy,
    combined,
    nginx_json,
)

AT_S = 1_795_285_205
AT_MS = AT_S * 1000
GOOGLE = LoggedRequest(AT_MS, "GET", "/posts-1.xml", 200, GOOGLEBOT, "66.249.66.1")
moments = st.integers(0, 253_402_300_799)
zones = st.integers(-14 * 60, 14 * 60)
# what canonical URLs are made of
targets = st.from_regex(r"/[A-Za-z0-9\-._~!$&'()*+,;=:@/?%]{0,60}", fullmatch=True)
agents = st.text(
    st.characters(min_codepoint=32, max_codepoint=126, exclude_characters='"\\'), max_size=60
)


@given(st.binary(max_size=300))
@example(b"")
@example(b"{" * 100_000)
@example(b'{"time": ' + b"9" * 5_000 + b', "uri": "/", "status": 200}')
@example(b'{"time": 1e999, "uri": "/", "status": 200}')
@example(b'{"time": NaN, "uri": "/", "status": 200}')
@example(b'{"time": "0001-01-01T00:00:00+14:00", "uri": "/", "status": 200}')
@example(b'{"time": 1, "uri": "\\ud800", "status": 200}')
def test_any_bytes_are_a_request_or_none(line: bytes) -> None:
    request = parse(line)

    assert request is None or 0 <= request.at_ms < 253_402_300_800_000


scalars = st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=9)
shapes = st.recursive(
    scalars, lambda of: st.lists(of) | st.dictionaries(st.text(), of), max_leaves=4
)
names = st.sampled_from(
    ["time", "ts", "msec", "request", "uri", "status", "headers", "User-Agent", "host", "method"]
)


@given(st.dictionaries(names, shapes | st.dictionaries(names, shapes)))
def test_known_members_of_any_shape_are_a_request_or_none(record: dict[str, Any]) -> None:
    request = parse(json.dumps(record).encode())

    assert request is None or isinstance(request.target, str)


@given(moments, zones, targets, st.integers(100, 999), agents)
def test_a_combined_line_gives_back_what_was_written(
    at_s: int, zone_min: int, target: str, status: int, agent: str
) -> None:
    if not 86_400 <= at_s < 253_402_300_799 - 86_400:  # the zone must not leave the calendar
        at_s = AT_S
    line = combined(at_s * 1000, target, agent, status=status, zone_min=zone_min)

    assert parse(line) == LoggedRequest(at_s * 1000, "GET", target, status, agent, "66.249.66.1")


@given(moments.map(lambda at_s: at_s % 4_000_000_000 * 1000 + at_s % 1000), targets, st.text())
def test_a_json_line_gives_back_what_was_written(at_ms: int, target: str, agent: str) -> None:
    request = parse(nginx_json(at_ms, target, agent))

    assert request is not None
    assert abs(request.at_ms - at_ms) <= 1  # a double holds no exact thousandths
    said = agent if agent not in {"", "-"} else ""
    assert request[1:] == ("GET", target, 200, said, "66.249.66.1", "")


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        (combined(AT_MS, "/posts-1.xml"), GOOGLE),
        (combined(AT_MS, "/posts-1.xml", zone_min=60), GOOGLE),
        (combined(AT_MS, "/posts-1.xml", zone_min=-570), GOOGLE),
        (combined(AT_MS, "/posts-1.xml", after=' "203.0.113.9" 0.001 HIT'), GOOGLE),
        (combined(AT_MS, "/posts-1.xml", after="\r"), GOOGLE),
        (combined(AT_MS, "/posts-1.xml", address="2001:4860::1"),
         GOOGLE._replace(address="2001:4860::1")),
        (combined(AT_MS, "/posts-1.xml", before="www.example.com:443 "),
         GOOGLE._replace(host="www.example.com:443")),
        (combined(AT_MS, "http://www.example.com/posts-1.xml"),
         GOOGLE._replace(host="www.example.com")),
        (combined(AT_MS, "/posts-1.xml").replace(b"- -", b"- Jane [x] Doe"), GOOGLE),
        (combined(AT_MS, "/posts-1.xml").replace(b' "-"', rb' "a \"q\" \\"'), GOOGLE),
        (combined(AT_MS, "/posts-1.xml", status=304, method="HEAD"),
         GOOGLE._replace(status=304, method="HEAD")),
        (caddy(AT_MS, "/posts-1.xml"), GOOGLE._replace(host="www.example.com")),
    ],
)  # fmt: skip
def test_a_line_as_servers_write_it_is_read(line: bytes, wanted: LoggedRequest) -> None:
    assert parse(line) == wanted


@pytest.mark.parametrize(
    "members",
    [
        {"time": "2026-11-21T19:00:05+01:00"},
        {"time": "2026-11-21T18:00:05.000Z"},
        {"@timestamp": "2026-11-21T18:00:05+0000"},
        {"StartUTC": "2026-11-21T18:00:05.000000000Z"},
        {"time_local": "21/Nov/2026:18:00:05 +0000"},
        {"ts": 1_795_284_005},
        {"timestamp": 1_795_284_005_000},
        {"EdgeStartTimestamp": 1_795_284_005_000_000_000},
    ],
)
def test_a_time_is_taken_in_each_form_that_has_a_zone(members: dict[str, Any]) -> None:
    request = parse(json.dumps({"uri": "/", "status": 200} | members).encode())

    assert request is not None
    assert request.at_ms == 1_795_284_005_000


@pytest.mark.parametrize(
    "line",
    [
        b'1.2.3.4 - - [21/Nov/2026:10:00:05] "GET / HTTP/1.1" 200 5 "-" "Googlebot"',
        b'1.2.3.4 - - [31/Feb/2026:10:00:05 +0000] "GET / HTTP/1.1" 200 5 "-" "Googlebot"',
        b'1.2.3.4 - - [21/Now/2026:10:00:05 +0000] "GET / HTTP/1.1" 200 5 "-" "Googlebot"',
        b'1.2.3.4 - - [21/Nov/2026:10:00:05 +0000] "GET / HTTP/1.1" 200 5',  # common, no agent
        b'1.2.3.4 - - [21/Nov/2026:10:00:05 +0000] "\\x16\\x03" 400 0 "-" "Googlebot"',
        b'1.2.3.4 - - [21/Nov/2026:10:00:05 +0000] "GET / HTTP/1.1" 200 5 "-" "Googlebo',
        b'{"time": "2026-11-21T18:00:05", "uri": "/", "status": 200}',
        b'{"time": "yesterday", "uri": "/", "status": 200}',
        b'{"time": 1795284005, "uri": "/", "status": "-"}',
        b'{"time": 1795284005, "uri": 5, "status": 200}',
        b'{"time": 1795284005, "uri": "/", "status": 200',
        b"[]",
    ],
)
def test_a_line_that_does_not_say_when_what_or_who_is_broken(line: bytes) -> None:
    assert parse(line) is None


def test_the_hour_that_comes_twice_is_told_apart_by_its_zone() -> None:
    """In Berlin on 25 October 2026 the clock goes from 03:00 +0200 back to 02:00 +0100."""
    line = b'1.2.3.4 - - [25/Oct/2026:02:30:00 %s] "GET / HTTP/1.1" 200 5 "-" "Googlebot"'
    first, second = parse(line % b"+0200"), parse(line % b"+0100")

    assert first is not None
    assert second is not None
    assert second.at_ms - first.at_ms == 3_600_000


@pytest.mark.parametrize(
    ("agent", "name"),
    [
        (GOOGLEBOT, "Googlebot"), ("Googlebot-Image/1.0", "Googlebot"), (BINGBOT, "Bingbot"),
        ("Mozilla/5.0 (compatible; Google-InspectionTool/1.0;)", "Google-InspectionTool"),
        ("Mozilla/5.0 (compatible; YandexBot/3.0; +http://yandex.com/bots)", "YandexBot"),
        ("Mozilla/5.0 (compatible; Yeti/1.1; +https://naver.me/spd)", "Yeti"),
        ("Mozilla/5.0 (compatible; SeznamBot/4.0; +http://napoveda.seznam.cz/)", "SeznamBot"),
        ("Mozilla/5.0 (Macintosh) Safari/605.1.15 (Applebot/0.1)", "Applebot"),
        ("Mozilla/5.0; compatible; OAI-SearchBot/1.3; +https://openai.com/bot", "OAI-SearchBot"),
        ("Mozilla/5.0 (compatible; Claude-SearchBot/1.0)", "Claude-SearchBot"),
        ("Mozilla/5.0 (compatible; ClaudeBot/1.0; +claudebot@anthropic.com)", "ClaudeBot"),
        (BROWSER, None), ("Yeti in the snow", None), ("", None),
    ],
)  # fmt: skip
def test_an_engine_is_known_by_its_user_agent(agent: str, name: str | None) -> None:
    found = engine_of(agent)

    assert (found and found.name) == name


def test_the_table_of_engines_is_whole() -> None:
    for engine in ENGINES:
        assert engine.source.startswith("https://")
        assert all(token == token.lower() and token for token in engine.tokens)
        assert engine_of(engine.tokens[0]) is engine
        assert not (engine.domains and engine.addresses)
