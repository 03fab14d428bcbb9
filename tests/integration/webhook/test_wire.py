"""The webhook as a process: what only a real server, real sockets and a dying Redis can show."""

from __future__ import annotations

import json
import signal
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.integration.served import TOKEN, Answer, Web, wait

UPSERT = json.dumps({"type": "upsert", "loc": "https://www.example.com/canary-page"}).encode()
ANSWER_S = 3.0
"""RELIABILITY N5: every fault of Redis is answered within this time."""


@pytest.fixture(scope="module")
def shared_web(redis_server, tmp_path_factory, secret) -> Iterator[Web]:
    web = Web(redis_server, tmp_path_factory.mktemp("web"), secret, wait)
    yield web
    web.stop()


@pytest.fixture
def web(shared_web: Web, store) -> Web:  # noqa: ARG001  # it empties the store
    """The process, with an empty store, but for its notes of what it refused in the test before."""
    assert not shared_web.state()
    return shared_web


@pytest.fixture
def fragile_web(fragile_redis, tmp_path, secret) -> Iterator[Web]:
    web = Web(fragile_redis, tmp_path, secret, wait)
    yield web
    web.stop()


def status(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1]) if answer.startswith(b"HTTP/1.1 ") else 0


def test_a_signed_event_is_accepted_over_the_wire(web, signed):
    answer = web.post(UPSERT, signed(UPSERT))

    assert answer.status == 202
    assert web.store.xlen("{demo}:inbox") == 1


@pytest.mark.parametrize("more", [[], [f"Content-Length: {len(UPSERT)}"]])
def test_t6_chunked_bodies_are_refused(web, signed, more):
    head = web.head(signed(UPSERT), "Transfer-Encoding: chunked", *more)
    answer = web.raw(head, b"%x\r\n%s\r\n0\r\n\r\n" % (len(UPSERT), UPSERT))

    assert status(answer) in {400, 411}
    assert set() == web.state()


def test_t6_a_body_without_a_length_is_refused(web, signed):
    answer = web.raw(web.head(signed(UPSERT)))

    assert status(answer) == 411
    assert b'"code":"length-required"' in answer
    assert set() == web.state()


def test_t6_a_body_that_ends_early_is_never_taken(web, signed):
    head = web.head(signed(UPSERT), f"Content-Length: {len(UPSERT) + 1}")
    answer = web.raw(head, UPSERT, finish=True)

    assert status(answer) in {0, 503}
    assert set() == web.state()
    assert web.alive()


def test_t6_a_large_body_is_refused_unread(web, signed):
    answer = web.raw(web.head(signed(b""), "Content-Length: 100000000"))

    assert status(answer) == 413
    assert set() == web.state()


def test_t7_compressed_bodies_are_refused_unread(web, signed):
    answer = web.raw(web.head(signed(b""), "Content-Encoding: gzip", "Content-Length: 100000000"))

    assert status(answer) == 415
    assert set() == web.state()


def test_a_body_that_comes_slowly_keeps_nobody_waiting(web, signed):
    head = web.head(signed(UPSERT), f"Content-Length: {len(UPSERT)}")
    with socket.create_connection(("127.0.0.1", web.port), timeout=5) as slow:
        slow.sendall(head + UPSERT[:10])
        began = time.monotonic()
        quick = web.post(UPSERT, signed(UPSERT, ident="quick"))
        took = time.monotonic() - began
        slow.sendall(UPSERT[10:])
        answer = slow.recv(65_536)

    assert (quick.status, status(answer)) == (202, 202)
    assert took < 1


def test_t1_bytes_that_are_no_text_in_headers_are_refused(web, signed):
    length = f"Content-Length: {len(UPSERT)}"
    head = web.head(signed(UPSERT) | {"webhook-signature": "v1,SIG"}, length)
    answer = web.raw(head.replace(b"SIG", b"\xff\xfe\x80"), UPSERT)

    assert status(answer) in {400, 401}
    assert set() == web.state()


def test_finding_3_a_frozen_redis_is_answered_503_in_time(fragile_web, signed):
    web = fragile_web
    web.post(UPSERT, signed(UPSERT))
    web.redis.send(signal.SIGSTOP)

    def timed(n: int) -> tuple[Answer, float]:
        began = time.monotonic()
        answer = web.post(UPSERT, signed(UPSERT, ident=f"frozen-{n}"))
        return answer, time.monotonic() - began

    with ThreadPoolExecutor(16) as pool:
        results = list(pool.map(timed, range(48)))
    web.redis.send(signal.SIGCONT)

    assert {(503, "5")} == {(a.status, a.headers["retry-after"]) for a, _ in results}
    assert max(seconds for _, seconds in results) < ANSWER_S
    wait(lambda: web.post(UPSERT, signed(UPSERT, ident="later")).status == 202, "recovery")


def test_a_killed_redis_is_answered_503_and_nothing_acknowledged_is_lost(fragile_web, signed):
    web = fragile_web
    for n in range(20):
        assert web.post(UPSERT, signed(UPSERT, ident=f"before-{n}")).status == 202
    web.redis.kill()

    began = time.monotonic()
    answer = web.post(UPSERT, signed(UPSERT, ident="while-down"))
    ready = web.ask("GET", "/readyz", b"", {})
    assert time.monotonic() - began < ANSWER_S
    assert (
        answer.status,
        answer.headers["retry-after"],
        answer.json["code"],
    ) == (503, "5", "store-down")
    assert (ready.status, web.ask("GET", "/healthz", b"", {}).status) == (503, 200)

    web.redis.start()
    wait(lambda: web.post(UPSERT, signed(UPSERT, ident="after")).status in {200, 202}, "202")
    assert web.redis.client().xlen("{demo}:inbox") == 21


def test_wake_ups_go_on_after_redis_was_away(fragile_web, signed):
    web = fragile_web
    web.post(UPSERT, signed(UPSERT))
    wait(lambda: web.redis.client().llen("sitemapd") == 1, "the first wake-up")
    web.redis.kill()
    web.redis.start()

    def woken() -> bool:
        client = web.redis.client()
        client.delete("{demo}:awake")
        web.post(UPSERT, signed(UPSERT, ident=str(time.monotonic_ns())))
        return bool(client.llen("sitemapd") > 1)

    wait(woken, "a wake-up over a new connection")


def test_t30_no_secret_token_signature_or_body_is_logged(web, signed, secret):
    forged = signed(UPSERT, key=b"x" * 32)
    bearer = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
    for headers in (signed(UPSERT), forged, bearer, {**bearer, "Content-Type": "text/canary"}):
        web.post(UPSERT, headers)
        web.post(b'{"canary-key": "canary', headers)
        web.post(b'{"type": "canary-type"}', headers)
    web.ask("GET", "/v1/sites/canary-site?canary-query", b"", bearer)
    wait(lambda: web.log.read_text().count('"answered"') > 12, "the log")

    text = web.log.read_text()
    assert "canary" not in text
    assert secret.removeprefix("whsec_") not in text
    assert signed(UPSERT)["webhook-signature"][3:] not in text
    assert forged["webhook-signature"][3:] not in text


def test_t3_a_conflict_is_logged_with_both_digests(web, signed):
    other = UPSERT.replace(b"canary-page", b"another-page")
    for body in (UPSERT, other):
        web.post(body, signed(body, ident="twice"))

    def lines() -> list[dict[str, Any]]:
        said = web.log.read_text().splitlines()
        return [json.loads(line) for line in said if '"twice"' in line]

    wait(lambda: len(lines()) > 1, "both are logged")
    first, second = lines()
    assert (first["status"], second["status"], second["code"]) == (202, 409, "conflict")
    assert second["stands"] == first["digest"] != second["digest"]
