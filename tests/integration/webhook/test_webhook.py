"""What the webhook answers, over a real store: events, counts, pages, faults."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
import redis

from shared.domain.batch_state import Policy
from shared.domain.decide_batch import ArrivedEvent, decide_all
from shared.domain.page_record import Arrival
from shared.domain.routing import Routing
from shared.errors import StoreDownError
from shared.events.event import Event
from shared.store.inbox.inbox import Inbox
from shared.store.pages.page_repository import PageRepository
from tests.integration.rig import Rig
from webhook.app import create_app

LOC = "https://www.example.com/a"
ADDRESS = "/v1/sites/demo/events"
UPSERT = json.dumps({"type": "upsert", "loc": LOC}).encode()
TOKEN = "a-token-of-the-site"


def code(response: Any) -> tuple[int, str]:
    return response.status_code, response.json["code"]


def stored(store: redis.Redis, site: str = "demo") -> list[dict[str, Any]]:
    return [json.loads(fields[b"e"]) for _, fields in store.xrange(f"{{{site}}}:inbox")]


def titled(title: str) -> bytes:
    return json.dumps(
        [{"type": "upsert", "loc": LOC}, {**json.loads(UPSERT), "title": title}]
    ).encode()


class TestWarning:
    def test_what_was_taken_and_changed_is_said_to_its_sender(self, web, store, signed):
        """PROTOCOL F4: a title with a character that no XML can hold is taken without it."""
        body = titled("a\u0000b")
        first = web.post(ADDRESS, data=body, headers=signed(body, ident="w"))
        again = web.post(ADDRESS, data=body, headers=signed(body, ident="w"))

        (warning,) = first.json["warnings"]
        assert (first.status_code, warning["item"], warning["field"]) == (202, 1, "title")
        assert warning["rule"] == "PROTOCOL F4"
        assert warning["detail"]
        assert (again.status_code, again.json["warnings"]) == (200, first.json["warnings"])
        assert stored(store)[1]["title"] == "ab"

    def test_there_are_no_warnings_where_there_is_nothing_to_say(self, web, signed):
        body = titled("ab")

        assert "warnings" not in web.post(ADDRESS, data=body, headers=signed(body)).json

    @pytest.mark.parametrize(("lastmod", "rule"), [("2026-11", "M1"), ("2099-01-01", "M5")])
    def test_a_lastmod_that_will_not_be_listed_is_said_to_its_sender(
        self, web, store, signed, lastmod, rule
    ):
        body = json.dumps({**json.loads(UPSERT), "lastmod": lastmod}).encode()
        response = web.post(ADDRESS, data=body, headers=signed(body))

        assert response.status_code == 202
        assert [each["rule"] for each in response.json["warnings"]] == [f"PROTOCOL {rule}"]
        assert len(stored(store)) == 1

    @pytest.mark.parametrize(("count", "said"), [(1, "1 fault;"), (2, "2 faults;")])
    def test_faults_are_counted_in_words(self, web, signed, count, said):
        body = json.dumps([{"type": "upsert", "loc": "x"}] * count).encode()

        assert web.post(ADDRESS, data=body, headers=signed(body)).json["detail"].startswith(said)

    def test_a_hundred_warnings_are_the_most(self, web, signed):
        body = json.dumps([json.loads(titled("a\u0000b"))[1]] * 101).encode()

        assert len(web.post(ADDRESS, data=body, headers=signed(body)).json["warnings"]) == 100


class TestAccepting:
    def test_a_signed_event_is_stored_before_it_is_answered_202(self, web, store, signed):
        response = web.post(ADDRESS, data=UPSERT, headers=signed(UPSERT))

        assert (response.status_code, response.json["accepted"]) == (202, 1)
        ids = [ident.decode() for ident, _ in store.xrange("{demo}:inbox")]
        assert ids == response.json["ids"]
        assert stored(store) == [{"v": 1, "type": "upsert", "loc": LOC}]

    def test_a_token_is_enough_where_a_sender_cannot_sign(self, web, store):
        headers = {"Authorization": f"Bearer {TOKEN}", "webhook-id": "d-1"}
        statuses = [
            web.post(ADDRESS, data=UPSERT, headers=headers, content_type="application/json")
            for _ in range(2)
        ]

        assert [response.status_code for response in statuses] == [202, 200]
        assert len(stored(store)) == 1

    def test_ndjson_and_arrays_keep_their_order(self, web, store, signed):
        items = [{"type": "upsert", "loc": f"{LOC}{n}"} for n in range(3)]
        lines = "\r\n\r\n".join(map(json.dumps, items)).encode() + b"\n"
        array = json.dumps(items).encode()
        kind = {"Content-Type": "application/x-ndjson; charset=UTF-8"}

        first = web.post(ADDRESS, data=lines, headers=signed(lines, ident="n") | kind)
        second = web.post(ADDRESS + "/", data=array, headers=signed(array, ident="a"))

        assert [first.json["accepted"], second.json["accepted"]] == [3, 3]
        assert [item["loc"] for item in items] * 2 == [event["loc"] for event in stored(store)]

    def test_one_wake_up_is_sent_to_a_site_that_slept(self, config, fragile_redis, signed, until):
        """With a server of its own: wake-ups of other tests may come late."""
        web = create_app(config.model_copy(update={"redis_url": fragile_redis.url})).test_client()
        store = fragile_redis.client()
        for n in range(5):
            # The client reads the whole answer: the wake-up comes after it.
            headers = signed(UPSERT, ident=f"m{n}")
            web.post(ADDRESS, data=UPSERT, headers=headers, buffered=True)
        until(lambda: store.llen("sitemapd"), "the wake-up")

        message = json.loads(store.lindex("sitemapd", 0))
        assert store.llen("sitemapd") == 1
        assert message["headers"]["task"] == "sitemapd.wake"
        assert json.loads(base64.b64decode(message["body"]))[0] == ["demo"]

    def test_a_full_inbox_is_answered_503_and_takes_nothing(self, config, unchanged, signed):
        web = create_app(config.model_copy(update={"inbox_limit": 1})).test_client()
        web.post(ADDRESS, data=UPSERT, headers=signed(UPSERT))
        with unchanged():
            response = web.post(ADDRESS, data=UPSERT, headers=signed(UPSERT, ident="m2"))

        assert code(response) == (503, "inbox-full")
        assert response.headers["Retry-After"] == "5"


class TestAddresses:
    @pytest.mark.parametrize("slash", ["", "/"])
    @pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "OPTIONS", "PATCH"])
    def test_events_are_only_posted(self, web, method, slash):
        response = web.open(ADDRESS + slash, method=method)

        assert code(response) == (405, "method-not-allowed")
        assert response.headers["Allow"] == "POST"

    @pytest.mark.parametrize("path", ["/", "//v1//sites/demo/events", "/v1/sites/a/b/c", "/%ff"])
    def test_unknown_addresses_are_problems_and_never_redirects(self, web, path):
        response = web.post(path)

        assert code(response) == (404, "not-found")
        assert response.content_type == "application/problem+json"

    @pytest.mark.parametrize("path", ["/healthz", "/readyz/", "/openapi.json", "/healthz/"])
    def test_open_addresses_answer_json(self, web, path):
        response = web.get(path)

        assert (response.status_code, response.content_type) == (200, "application/json")
        assert len(response.headers["X-Request-Id"]) == 16

    def test_a_site_tells_what_is_listed_and_what_waits(self, web, signed):
        web.post(ADDRESS, data=UPSERT, headers=signed(UPSERT))
        response = web.get("/v1/sites/demo", headers={"Authorization": f"Bearer {TOKEN}"})

        told = response.json
        assert (told["site"], told["urls"], told["waiting_events"]) == ("demo", 0, 1)

    def test_a_page_is_found_where_it_is_listed(self, web, store, config):
        pages = PageRepository.of(store, "demo", config.sites["demo"])
        bearer = {"Authorization": f"Bearer {TOKEN}"}

        def ask() -> dict[str, Any]:
            return web.get("/v1/sites/demo/entries", query_string={"loc": LOC}, headers=bearer).json

        never = ask()
        assert (never["loc"], never["listed"]) == (LOC, False)
        assert "no event about this URL" in never["why"]
        apply(pages, Event("upsert", LOC, version=1_795_000_000_000, lastmod="2026-11-01"))
        assert ask() == {
            "loc": LOC,
            "listed": True,
            "version": "2026-11-18T11:06:40Z",
            "section": "pages",
            "file": "pages-1.xml",
            "url": "https://www.example.com/pages-1.xml",
            "published": False,
            "lastmod": "2026-11-01",
            "lately": [],
        }
        apply(pages, Event("delete", LOC, version=1_795_000_001_000))
        assert (ask()["listed"], ask()["why"]) == (False, "the latest event removed it")

    def test_anyone_may_ask_whether_the_files_list_a_page(self, web, store, tmp_path):
        rig = Rig(store, tmp_path)
        rig.do({"type": "upsert", "loc": LOC, "lastmod": "2026-11-01"})

        listed = web.get("/v1/sites/demo/listed", query_string={"loc": LOC})
        other = web.get("/v1/sites/demo/listed", query_string={"loc": f"{LOC}/?utm_source=x"})

        page = {"loc": LOC, "file": "pages-1.xml", "lastmod": "2026-11-01"}
        assert listed.json == {"listed": True, **page, "others": [], "pages": 1}
        assert listed.headers["Cache-Control"] == "no-store"
        assert (other.json["listed"], other.json["others"]) == (False, [page])
        assert code(web.get("/v1/sites/demo/listed")) == (422, "invalid")
        assert code(web.get(f"/v1/sites/none/listed?loc={LOC}")) == (404, "not-found")

    def test_a_site_without_a_page_for_visitors_answers_no_visitor(self, config, store):
        site = config.sites["demo"].model_copy(update={"viewer": False})
        changed = config.model_copy(update={"sites": {"demo": site}})
        bare = create_app(changed, store).test_client()

        assert code(bare.get(f"/v1/sites/demo/listed?loc={LOC}")) == (404, "not-found")

    @pytest.mark.parametrize(
        "query", ["", "?loc=", "?loc=https://evil.com/", "?loc=%00%ff", "?loc=\x80"]
    )
    def test_asking_for_what_is_no_url_of_this_site_is_invalid(self, web, query):
        bearer = {"Authorization": f"Bearer {TOKEN}"}
        # The client would escape it.
        raw = {"QUERY_STRING": query}
        response = web.get("/v1/sites/demo/entries", headers=bearer, environ_overrides=raw)

        assert code(response) == (422, "invalid")


def apply(pages: PageRepository, event: Event) -> None:
    read = pages.read([event])
    arrived = ArrivedEvent(event, Arrival(1_795_000_002_000, 0))
    _, after = decide_all(read.state, [arrived], Policy(Routing({})))
    assert pages.apply(read, after)


class Broken(redis.Redis):
    """A client with a fault of our own making."""

    def ping(self, **_kwargs: Any) -> bool:
        raise ZeroDivisionError("a detail for nobody")


def test_a_fault_of_ours_is_a_problem_without_details(config):
    response = create_app(config, Broken.from_url(config.redis_url)).test_client().get("/readyz")

    assert code(response) == (500, "internal")
    assert "detail for nobody" not in response.text
    assert "Traceback" not in response.text


def test_an_event_is_refused_with_503_where_no_store_answers(config, signed):
    lost = config.model_copy(update={"redis_url": "unix:///nonexistent/redis.sock"})
    web = create_app(lost).test_client()
    answers = [
        web.post(ADDRESS, data=UPSERT, headers=signed(UPSERT)),
        web.get("/readyz"),
    ]

    assert [code(answer) for answer in answers] == [(503, "store-down")] * 2
    assert [answer.headers["Retry-After"] for answer in answers] == ["5", "5"]
    assert web.get("/healthz").status_code == 200
    with pytest.raises(StoreDownError):
        Inbox(redis.Redis.from_url(lost.redis_url), "demo").check()
