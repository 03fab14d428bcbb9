"""The paging of every reader of a CMS, and its client, over real HTTP."""

from __future__ import annotations

import traceback
from collections.abc import Callable

import pytest

from shared.errors import SourceError
from tests.unit.worker.sources.cms import Asked, Reply, served
from worker.sources.cms.collection_parts import EMPTY_PARTS, Part, entries
from worker.sources.json_api import LONGEST_PAUSE_S, TRIES, JsonApi
from worker.sources.records import RecordRefusal

SECRET = "canary-3c9e-key"


def test_entries_are_read_to_the_end_in_order() -> None:
    parts = {None: Part([{"n": 1}, {"n": 2}], 2, 3), 2: Part([{"n": 3}], None, 3)}
    assert list(entries("posts", parts.__getitem__)) == [{"n": 1}, {"n": 2}, {"n": 3}]


def test_a_collection_that_gave_fewer_than_it_has_may_lack_some() -> None:
    parts = {None: Part([{"n": 1}], 1, 3), 1: Part([{"n": 2}], None, 2)}
    *found, refusal = entries("posts", parts.__getitem__)
    assert found == [{"n": 1}, {"n": 2}]
    assert isinstance(refusal, RecordRefusal)
    assert refusal.whole
    assert "2 of 3" in refusal.detail


@pytest.mark.parametrize(
    "part",
    [
        lambda _: Part([{"n": 1}], "again"),
        lambda cursor: Part([], (cursor or 0) + 1),
    ],
)
def test_a_collection_without_an_end_is_given_up(part: Callable[[object], Part]) -> None:
    with pytest.raises(SourceError, match="comes to no end"):
        list(entries("posts", part))


def test_empty_parts_between_entries_are_no_end() -> None:
    def part(cursor: int | None) -> Part:
        at = cursor or 0
        return Part([{"n": at}] if at == EMPTY_PARTS else [], None if at == EMPTY_PARTS else at + 1)

    assert list(entries("posts", part)) == [{"n": EMPTY_PARTS}]


class Limited:
    """A server that answers 429 so many times before it answers."""

    def __init__(self, times: int, status: int = 429, **headers: str) -> None:
        self.times, self.status = times, status
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}
        self.asked: list[Asked] = []

    def __call__(self, asked: Asked) -> Reply:
        self.asked.append(asked)
        if len(self.asked) <= self.times:
            return Reply({"token": SECRET}, self.status, self.headers)
        return Reply({"done": True})


def ask(server: Limited, waits: list[float]) -> object:
    with (
        served(server) as url,
        JsonApi(url, secret=("Authorization", SECRET), wait=waits.append) as api,
    ):
        return api.get(f"{url}/posts", token=SECRET).value


@pytest.mark.parametrize(
    ("server", "waited"),
    [
        (Limited(2, retry_after="7"), [7.0, 7.0]),
        (Limited(1, 503, retry_after="3"), [3.0]),
        (Limited(1, x_contentful_ratelimit_reset="2"), [2.0]),
        (Limited(1, x_ratelimit_reset="1792000000"), [1.0]),
        (Limited(1, retry_after="0"), [0.1]),
        (Limited(1), [1.0]),
    ],
)
def test_a_server_at_its_limit_is_asked_again_when_it_says(
    server: Limited, waited: list[float]
) -> None:
    waits: list[float] = []
    assert ask(server, waits) == {"done": True}
    assert waits == waited
    assert {asked.headers["authorization"] for asked in server.asked} == {SECRET}


@pytest.mark.parametrize(
    ("server", "said", "asked"),
    [
        (Limited(99), "answered 429", TRIES),
        (Limited(99, retry_after=f"{LONGEST_PAUSE_S + 1:.0f}"), "come back in 121 s", 1),
        (Limited(99, 500), "answered 500", 1),
        (Limited(99, 503), "answered 503", 1),
        (Limited(99, 403), "is source_key right", 1),
    ],
)
def test_a_server_that_keeps_refusing_is_left_alone_and_no_key_is_told(
    server: Limited, said: str, asked: int
) -> None:
    with pytest.raises(SourceError, match=said) as caught:
        ask(server, [])
    assert len(server.asked) == asked
    assert SECRET not in "".join(traceback.format_exception(caught.value))


def test_a_key_goes_to_its_own_server_only() -> None:
    """RELIABILITY T22: where the interface redirects to, the key is not sent along."""
    elsewhere: list[Asked] = []

    def other(asked: Asked) -> Reply:
        elsewhere.append(asked)
        return Reply({})

    with served(other) as target, served(lambda _: Reply({}, 302, {"Location": target})) as url:
        with JsonApi(url, secret=("X-Key", SECRET)) as api, pytest.raises(SourceError) as caught:
            api.get(f"{url}/posts")
        assert elsewhere == []
        assert "another site" in str(caught.value)
