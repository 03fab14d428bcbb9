"""A whole access log: which lines are of crawlers, and what is counted of it."""

from __future__ import annotations

import gzip
from io import BufferedReader, BytesIO
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.crawls import log_files
from shared.crawls.crawlers import engine_of
from shared.crawls.log_files import LONGEST_LINE, AccessLog
from shared.crawls.log_lines import parse
from tests.unit.shared.crawls.crawling import (
    BINGBOT,
    BROWSER,
    GOOGLEBOT,
    caddy,
    combined,
    nginx_json,
)

START_MS = 1_795_284_000_000
lines = st.one_of(
    st.builds(
        combined, st.integers(START_MS, START_MS + 10**9), st.sampled_from(["/", "/googlebot"]),
        st.sampled_from([GOOGLEBOT, BINGBOT, BROWSER, "curl"]),
    ),
    st.builds(nginx_json, st.integers(START_MS, START_MS + 10**9), st.just("/")),
    st.builds(caddy, st.integers(START_MS, START_MS + 10**9), st.just("/")),
    st.binary(max_size=50).map(lambda junk: junk.replace(b"\n", b"") + b"\n"),
    st.just(b"Googlebot\n"),
)  # fmt: skip


def file(content: bytes) -> BufferedReader:
    return BufferedReader(BytesIO(content))  # type: ignore[type-var]


@given(st.lists(lines, max_size=20), st.booleans(), st.booleans())
def test_no_line_of_a_crawler_is_missed(of: list[bytes], packed: bool, ended: bool) -> None:
    content = b"".join(of)
    content = content if ended else content.removesuffix(b"\n")
    log = AccessLog()

    found = [*log.read(file(gzip.compress(content) if packed else content))]

    requests = [parse(line) for line in content.split(b"\n")]
    wanted = [(e, request) for request in requests if request and (e := engine_of(request.agent))]
    assert found == wanted
    assert log.engines == len(wanted)
    assert log.lines == content.count(b"\n") + (content[-1:] not in {b"", b"\n"})


@pytest.mark.parametrize("packed", [False, True])
def test_a_log_of_many_blocks_is_read_whole(packed: bool) -> None:
    some, wanted = Random(7), 0
    content = bytearray()
    while len(content) < 3 * log_files.BLOCK:
        is_bot = some.random() < 0.3
        wanted += is_bot
        agent = (GOOGLEBOT if is_bot else BROWSER) + "x" * some.randrange(300)
        content += combined(START_MS + len(content), f"/{some.random()}", agent)
    log, seen = AccessLog(), []

    found = [*log.read(file(gzip.compress(content, 1) if packed else bytes(content)),
                       lambda: seen.append(1))]  # fmt: skip

    assert (len(found), log.broken) == (wanted, 0)
    assert log.lines == content.count(b"\n")
    assert len(seen) >= 3


@pytest.mark.parametrize("size", [LONGEST_LINE + 1, log_files.BLOCK - 5, 3 * log_files.BLOCK])
def test_a_line_without_end_is_counted_and_left_out(size: int) -> None:
    good = combined(START_MS, "/")
    log = AccessLog()

    found = [*log.read(file(good + b"Googlebot" + b"x" * size + b"\n" + good))]

    assert len(found) == 2
    assert (log.lines, log.broken) == (3, 1)


def test_lines_that_name_a_crawler_and_cannot_be_read_are_counted() -> None:
    log = AccessLog()

    found = [*log.read(file(b"Googlebot was here\n" + combined(START_MS, "/") + b"nobody\n"))]

    assert len(found) == 1
    assert (log.lines, log.engines, log.broken) == (3, 1, 1)


def test_the_log_begins_and_ends_with_any_request_not_with_one_of_a_crawler() -> None:
    log = AccessLog()
    parts = [combined(START_MS + at * 1000, "/", BROWSER) for at in (0, 5, 9)]

    assert not [*log.read(file(b"".join(parts)))]

    assert (log.first_ms, log.last_ms) == (START_MS, START_MS + 9000)


@pytest.mark.parametrize("damage", ["cut", "spoilt"])
def test_of_a_damaged_gzip_the_part_before_counts(damage: str) -> None:
    some = Random(3)
    content = b"".join(combined(START_MS, f"/{some.random()}") for _ in range(20_000))
    packed = bytearray(gzip.compress(content))
    half = len(packed) // 2
    packed[half:] = b"" if damage == "cut" else b"\xff" * half
    log, found = AccessLog(), []

    with pytest.raises(gzip.BadGzipFile):
        found.extend(log.read(file(bytes(packed))))

    assert 5_000 < len(found) < 15_000
