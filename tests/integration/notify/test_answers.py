"""Each answer of each engine leads to what is documented (PROTOCOL U5)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pytest

from tests.integration.conftest import RedisServer
from tests.integration.engines import Behaviour, Engine, hang, raw, reply
from tests.integration.notified import MINUTE, SECRET, TABLES, TOKEN, Desk, table_of
from tests.integration.rig import BASE
from tests.integration.webmasters import Account
from worker.notify.engine import AnswerVerdict

A = BASE + "a"
HOUR = 60 * MINUTE
GOOGLES = ("search_console", "google_indexing")


class Open(NamedTuple):
    """An engine, and a desk that tells it."""

    name: str
    server: Engine
    desk: Desk


@pytest.fixture(scope="module")
def engines(
    redis_server: RedisServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Open]]:
    """Every engine on a site of its own, which has published something."""
    folder = tmp_path_factory.mktemp("engines")
    account, found = folder / "account.json", dict[str, Open]()
    account.write_text(Account().json)
    with redis_server.client() as client:
        client.flushall()
        for name in (*TABLES, *GOOGLES):
            server = Engine()
            table, more = table_of(name, server.url, account)
            site = name.replace("_", "-")
            desk = Desk(client, folder / name, {name: table}, name=site, **more)
            desk.publish("jobs")
            found[name] = Open(name, server, desk)
        yield found
    for opened in found.values():
        opened.server.close()


@pytest.fixture
def opened(request: pytest.FixtureRequest, engines: dict[str, Open]) -> Open:
    """The engine of that name, which was never told of anything."""
    opened = engines[request.param]
    opened.desk.forget()
    opened.server.asked.clear()
    return opened


def quota(detail: str) -> Behaviour:
    return reply(400, {"ErrorCode": 2, "Message": detail})


BY_STATUS = [
    (reply(200), AnswerVerdict.DONE, 0),
    (reply(202), AnswerVerdict.PENDING, 0),
    (reply(400), AnswerVerdict.REFUSED, 0),
    (reply(401), AnswerVerdict.FORBIDDEN, 0),
    (reply(403), AnswerVerdict.FORBIDDEN, 0),
    (reply(404), AnswerVerdict.FORBIDDEN, 0),
    (reply(405), AnswerVerdict.FORBIDDEN, 0),
    (reply(422), AnswerVerdict.REFUSED, 0),
    (reply(429), AnswerVerdict.BUSY, MINUTE),
    (reply(429, retry_after="7200"), AnswerVerdict.BUSY, 2 * HOUR),
    (reply(429, retry_after="5"), AnswerVerdict.BUSY, MINUTE),
    (reply(429, retry_after="999999999"), AnswerVerdict.BUSY, 24 * HOUR),
    (reply(500), AnswerVerdict.FAILED, MINUTE),
    (reply(503, retry_after="300"), AnswerVerdict.FAILED, 5 * MINUTE),
    (reply(301, location="https://elsewhere.example/"), AnswerVerdict.FORBIDDEN, 0),
    (raw(b""), AnswerVerdict.FAILED, MINUTE),
    (raw(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort"), AnswerVerdict.FAILED, MINUTE),
    (reply(200, bytes(70_000)), AnswerVerdict.FAILED, MINUTE),
]
"""Behaviour, what it means, and how long until it is tried again (ms)."""

COMMON = [BY_STATUS[n] for n in (2, 3, 4, 5, 9, 12, 14, 16, 17)]
"""What all of them may say: 400, 401, 403, 404, 429, 500, a redirect, less than was promised, more
than is read.
"""

RATE = {"error": {"code": 403, "errors": [{"reason": "rateLimitExceeded"}]}}
GOOGLE = [
    BY_STATUS[0],
    (reply(204), AnswerVerdict.DONE, 0),
    *COMMON,
    (reply(403, RATE), AnswerVerdict.BUSY, MINUTE),
    (reply(429, {"error": {"status": "RESOURCE_EXHAUSTED"}}), AnswerVerdict.BUSY, MINUTE),
]


ANSWERS = [
    *(("indexnow", *row) for row in BY_STATUS),
    *(("crawler", *row) for row in (BY_STATUS[0], *COMMON)),
    *(("websub", *row) for row in (*BY_STATUS[:2], (reply(204), AnswerVerdict.DONE, 0), *COMMON)),
    ("bing", reply(200, {"d": None}), AnswerVerdict.DONE, 0),
    ("bing", reply(200), AnswerVerdict.FAILED, MINUTE),
    ("bing", reply(200, b"<html>Sorry</html>"), AnswerVerdict.FAILED, MINUTE),
    ("bing", reply(200, {"ErrorCode": 8, "Message": "bad"}), AnswerVerdict.REFUSED, 0),
    ("bing", reply(400, {"ErrorCode": 7, "Message": "InvalidUrl"}), AnswerVerdict.REFUSED, 0),
    ("bing", reply(400, {"ErrorCode": 3, "Message": "InvalidApiKey"}), AnswerVerdict.FORBIDDEN, 0),
    ("bing", reply(400, {"ErrorCode": 14, "Message": "NotAuthorized"}), AnswerVerdict.FORBIDDEN, 0),
    (
        "bing",
        reply(400, {"ErrorCode": 1, "Message": "InternalError"}),
        AnswerVerdict.FAILED,
        MINUTE,
    ),
    ("bing", reply(400, {"ErrorCode": 5, "Message": "ThrottleHost"}), AnswerVerdict.BUSY, 6 * HOUR),
    (
        "bing",
        quota("ERROR!!! Quota remaining for today: 0, Submitted: 1"),
        AnswerVerdict.BUSY,
        6 * HOUR,
    ),
    *(("bing", *row) for row in COMMON),
    ("yandex", reply(202, {"task_id": "c7", "quota_remainder": 1}), AnswerVerdict.DONE, 0),
    ("yandex", reply(400, {"error_code": "INVALID_URL"}), AnswerVerdict.REFUSED, 0),
    ("yandex", reply(403, {"error_code": "INVALID_USER_ID"}), AnswerVerdict.FORBIDDEN, 0),
    ("yandex", reply(404, {"error_code": "HOST_NOT_VERIFIED"}), AnswerVerdict.FORBIDDEN, 0),
    ("yandex", reply(409, {"error_code": "URL_ALREADY_ADDED"}), AnswerVerdict.DONE, 0),
    ("yandex", reply(429, {"error_code": "QUOTA_EXCEEDED"}), AnswerVerdict.BUSY, 6 * HOUR),
    ("yandex", reply(429, retry_after="120"), AnswerVerdict.BUSY, 2 * MINUTE),
    *(("yandex", *row) for row in COMMON[4:]),
    ("baidu", reply(200, {"remain": 9, "success": 1}), AnswerVerdict.DONE, 0),
    (
        "baidu",
        reply(200, {"error": 401, "message": "token is not valid"}),
        AnswerVerdict.FORBIDDEN,
        0,
    ),
    ("baidu", reply(200, b""), AnswerVerdict.FAILED, MINUTE),
    ("baidu", reply(200, b"[]"), AnswerVerdict.FAILED, MINUTE),
    (
        "baidu",
        reply(401, {"error": 401, "message": "token is not valid"}),
        AnswerVerdict.FORBIDDEN,
        0,
    ),
    ("baidu", reply(400, {"error": 400, "message": "site error"}), AnswerVerdict.FORBIDDEN, 0),
    ("baidu", reply(400, {"error": 400, "message": "empty content"}), AnswerVerdict.REFUSED, 0),
    ("baidu", reply(400, {"error": 400, "message": "over quota"}), AnswerVerdict.BUSY, 6 * HOUR),
    ("baidu", reply(404, {"error": 404, "message": "not found"}), AnswerVerdict.FORBIDDEN, 0),
    (
        "baidu",
        reply(500, {"error": 500, "message": "internal error"}),
        AnswerVerdict.FAILED,
        MINUTE,
    ),
    *(("baidu", *row) for row in COMMON),
    *((name, *row) for name in GOOGLES for row in GOOGLE),
]


def rows(answers: list[tuple[str, Behaviour, AnswerVerdict, int]]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(
        ("opened", "behaviour", "verdict", "wait"), answers, indirect=["opened"]
    )


def holds(opened: Open, verdict: AnswerVerdict, wait: int) -> None:
    """What follows from a verdict, whichever engine it is from."""
    name, _, desk = opened
    # After 202 the key is looked at, and www.example.com may not be asked here.
    record = desk.notices.records(2)[-1 if verdict is AnswerVerdict.PENDING else 0]
    breaker = desk.breaker(name)
    assert record.outcome == verdict, record
    assert SECRET not in str((desk.notices.records(), [*desk.notices.dead()], breaker))
    if verdict in {AnswerVerdict.DONE, AnswerVerdict.PENDING}:
        assert (desk.waiting(name), desk.dead(), breaker) == (0, {}, None)
        return
    assert breaker is not None
    assert breaker.paused is (verdict is AnswerVerdict.FORBIDDEN)
    if verdict in {AnswerVerdict.REFUSED, AnswerVerdict.FORBIDDEN}:
        assert (desk.waiting(name), desk.dead(), record.next) == (0, {name: [A]}, 0)
        assert record.detail
    else:
        assert (desk.waiting(name), desk.dead()) == (1, {})
        assert (record.next, breaker.until) == (desk.now + wait,) * 2


@rows(ANSWERS)
def test_every_answer_leads_to_what_is_documented(
    opened: Open, behaviour: Behaviour, verdict: AnswerVerdict, wait: int
) -> None:
    opened.server.script = [TOKEN, behaviour] if opened.name in GOOGLES else [behaviour]

    opened.desk.tell(A)

    holds(opened, verdict, wait)


@rows(
    [
        ("search_console", reply(400, {"error": "invalid_grant"}), AnswerVerdict.FORBIDDEN, 0),
        ("search_console", reply(401, {"error": "unauthorized"}), AnswerVerdict.FORBIDDEN, 0),
        ("search_console", reply(200, {"token_type": "Bearer"}), AnswerVerdict.FAILED, MINUTE),
        ("search_console", reply(200, b"not JSON"), AnswerVerdict.FAILED, MINUTE),
        ("search_console", reply(429, retry_after="300"), AnswerVerdict.BUSY, 5 * MINUTE),
        ("search_console", reply(503), AnswerVerdict.FAILED, MINUTE),
    ]
)
def test_without_a_token_google_is_not_asked(
    opened: Open, behaviour: Behaviour, verdict: AnswerVerdict, wait: int
) -> None:
    opened.server.script = [behaviour]

    opened.desk.tell(A)

    holds(opened, verdict, wait)
    assert [asked.target for asked in opened.server.asked] == ["/token"]


@pytest.mark.parametrize("opened", [*TABLES, *GOOGLES], indirect=True)
def test_an_engine_that_hangs_is_left_alone(opened: Open) -> None:
    opened.server.script = [hang]
    opened.desk.telling = opened.desk.another("w1", seconds=0.2)

    opened.desk.tell(A)

    holds(opened, AnswerVerdict.FAILED, MINUTE)
