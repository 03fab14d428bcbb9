"""What a CMS sends, over a real store: what of it is stored, answered and recorded."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Mapping
from typing import Any

import pytest
import redis
from cloudevents.core.bindings import http
from cloudevents.core.v1.event import CloudEvent
from cloudevents.v1 import conversion
from cloudevents.v1.http import CloudEvent as FormerCloudEvent

from shared.config.settings import Settings
from shared.events.event import Event
from shared.store.inbox.inbox import Inbox
from shared.store.keys import RECENT
from shared.store.operations.event_log import EventLog
from tests.integration.conftest import KEY, whsec
from tests.integration.logs import captured
from tests.unit.webhook.sources.delivering import PATH, SECRET, SITE, TOKEN, signed
from webhook import responses
from webhook.app import create_app

SOURCES = {
    "ghost": {"secret": SECRET},
    "github": {"secret": SECRET, "permalinks": {"content/{slug}.md": "/{slug}"}},
    "woocommerce": {"secret": SECRET},
    "strapi": {"secret": SECRET, "permalinks": {"article": "/{slug}"}},
    "prismic": {"secret": SECRET},
}
POST = {
    "id": "p1", "status": "published", "url": SITE + "/a/", "updated_at": "2026-11-20T10:00:00Z",
    "authors": [{"name": "Jane Canary", "email": "jane@canary.example"}],
}  # fmt: skip
GHOST = {"post": {"current": POST, "previous": {}}}


def settings(redis_url: str, root: Any, **change: Any) -> Settings:
    site = {
        "base_url": SITE, "web_root": root, "secrets": [whsec(KEY)], "tokens": [TOKEN],
        "sources": SOURCES, **change,
    }  # fmt: skip
    sites: Any = {"demo": site, "bare": {**site, "web_root": root / "b", "sources": {}}}
    return Settings(redis_url=redis_url, body_limit=65_536, sites=sites)


@pytest.fixture
def web(redis_server, store, tmp_path):
    assert not store.keys("{*")
    return create_app(settings(redis_server.url_of("web"), tmp_path)).test_client()


def send(
    web: Any, name: str, body: Any, headers: Mapping[str, str] = {}, path: str = "", **how: Any
) -> Any:
    hook = signed(name, body, headers, at=time.time(), **how)
    return web.post(path or PATH + name, data=hook.body, headers=dict(hook.headers))


def stored(store: redis.Redis) -> list[dict[str, Any]]:
    return [json.loads(fields[b"e"]) for _, fields in store.xrange("{demo}:inbox")]


def recorded(store: redis.Redis) -> list[dict[str, Any]]:
    return [json.loads(fields[b"ignored"]) for _, fields in store.xrange("{demo}:recent")]


class TestTaking:
    @pytest.mark.parametrize("path", [PATH + "ghost", PATH + "ghost/"])
    def test_a_delivery_is_stored_and_answered_200_at_either_address(self, web, store, path):
        response = send(web, "ghost", GHOST, path=path)

        assert (response.status_code, response.content_type) == (200, "application/json")
        assert response.json["accepted"] == 1
        (event,) = stored(store)
        when = event.pop("version")
        assert abs(when - time.time() * 1000) < 60_000
        assert event == {
            "v": 1, "type": "upsert", "loc": SITE + "/a/", "id": "p1", "source": "ghost",
            "kind": "post", "lastmod": "2026-11-20T10:00:00Z",
        }  # fmt: skip
        (entry,) = Inbox(store, "demo").read("test", 10)
        assert entry.id == response.json["ids"][0]
        assert Event.load(entry.payload).source == "ghost"

    def test_nothing_personal_and_no_secret_is_stored_or_logged(self, web, store):
        with captured(responses) as logs:
            send(web, "ghost", GHOST)
            send(web, "ghost", {"member": POST})
            send(web, "ghost", GHOST, secret="another-secret-altogether")
            send(web, "prismic", {"type": "api-update"})
        kept = [store.dump(key) for key in store.keys("*")]

        assert len(logs) == 4
        for canary in ("anary", SECRET, TOKEN):
            assert canary not in str(logs)
            assert not any(canary.encode() in value for value in kept if value)

    def test_senders_of_ours_need_nothing_but_the_sites_secret(self, web, store):
        body = {"type": "upsert", "id": 4, "loc": SITE + "/a"}
        assert send(web, "wordpress", body, path="/v1/sites/bare/hooks/wordpress").json["accepted"]
        assert store.xlen("{bare}:inbox") == 1

    def test_one_page_that_cannot_be_listed_keeps_no_other_out(self, web, store):
        body = [
            {"type": "upsert", "id": 1, "loc": "https://elsewhere.example/"},
            {"type": "upsert", "id": 2, "loc": SITE + "/b"},
        ]
        response = send(web, "wordpress", body)

        assert response.status_code == 200
        assert response.json["accepted"] == 2
        assert "is another site" in response.json["ignored"]
        assert [event["type"] for event in stored(store)] == ["delete", "upsert"]


class TestRefusing:
    def test_whoever_cannot_prove_itself_gets_one_answer(self, web, unchanged):
        with unchanged():
            answers = [
                send(web, "ghost", GHOST, secret="another-secret-altogether"),
                send(web, "ghost", GHOST, path="/v1/sites/nowhere/hooks/ghost"),
                send(web, "ghost", GHOST, path="/v1/sites/bare/hooks/ghost"),
                send(web, "ghost", GHOST, {"x-ghost-signature": "sha256=\u00e9, t=1"}),
            ]
        for answer in answers:
            assert answer.status_code == 401
            problem = dict(answer.json)
            problem.pop("request_id")
            assert problem.pop("code") == "unauthorized"
            assert problem == {k: v for k, v in answers[0].json.items()
                               if k not in {"request_id", "code"}}  # fmt: skip

    def test_and_one_in_the_words_of_its_cms(self, web):
        ghost = send(web, "ghost", GHOST, secret="another-secret-altogether").json["detail"]
        strapi = send(web, "strapi", b"{}", {"authorization": ""}).json["detail"]

        assert ghost.startswith("the Secret of the webhook is not a secret of this site")
        assert strapi.startswith("the header Authorization of the webhook is not a secret of")
        assert "sitemapd connect strapi" in strapi

    def test_an_old_delivery_is_stale(self, web, unchanged):
        hook = signed("ghost", GHOST, at=time.time() - 400)
        with unchanged():
            response = web.post(PATH + "ghost", data=hook.body, headers=dict(hook.headers))

        assert (response.status_code, response.json["code"]) == (401, "stale")

    def test_a_source_that_is_none_is_not_found(self, web):
        response = web.post(PATH + "typo3", data=b"{}")

        assert response.status_code == 404
        assert "wordpress" in response.json["detail"]

    def test_another_method_is_not_allowed_and_nothing_redirects(self, web):
        assert web.get(PATH + "ghost").status_code == 405
        assert web.put(PATH + "ghost/").status_code == 405

    @pytest.mark.parametrize(("change", "status"), [
        ({"content-type": "text/plain"}, 415), ({"content-encoding": "gzip"}, 415), ({}, 413),
    ])  # fmt: skip
    def test_the_gates_are_those_of_events(self, web, unchanged, change, status):
        body = {**GHOST, "long": "x" * 70_000 if status == 413 else ""}
        with unchanged():
            assert send(web, "ghost", body, change).status_code == status

    def test_a_body_that_is_no_strict_json_is_400(self, web):
        assert send(web, "ghost", b'{"post": NaN}').status_code == 400


class TestIgnoring:
    def test_what_means_nothing_is_answered_200_and_recorded(self, web, store):
        response = send(web, "strapi", {"event": "entry.publish", "model": "author",
                                        "entry": {"documentId": "d"}})  # fmt: skip

        assert response.status_code == 200
        assert response.json["accepted"] == 0
        assert "no permalink for the type author" in response.json["ignored"]
        assert recorded(store) == [
            {"source": "strapi", "reasons": [response.json["ignored"]], "accepted": 0}
        ]
        assert not store.exists("{demo}:inbox")
        assert [*EventLog(store, "demo").decisions(10)] == []

    def test_what_asks_for_a_comparison_says_so(self, web, store):
        response = send(web, "ghost", {})

        assert response.json["accepted"] == 1
        assert "the site changed" in response.json["resync"]
        (said,) = recorded(store)
        assert said["resync"] == [response.json["resync"]]
        ((_, stored),) = store.xrange("{demo}:inbox")
        assert Event.load(stored[b"e"]).type == "resync"

    def test_the_record_is_capped(self, web, store):
        store.xadd("{demo}:recent", {"ignored": "{}"})
        for _ in range(RECENT + 200):
            store.xadd("{demo}:recent", {"decided": "[]"})
        send(web, "ghost", {})

        assert store.xlen("{demo}:recent") <= RECENT + 100

    def test_the_greeting_of_woocommerce_is_answered_for_any_site_and_leaves_nothing(
        self, web, unchanged
    ):
        form = {"Content-Type": "application/x-www-form-urlencoded"}
        with unchanged():
            for site in ("demo", "bare", "nowhere"):
                path = f"/v1/sites/{site}/hooks/woocommerce"
                response = web.post(path, data=b"webhook_id=1", headers=form)
                assert (response.status_code, response.json["accepted"]) == (200, 0)
            assert web.post(path, data=b"webhook_id=x", headers=form).status_code == 401


class TestRepeating:
    PUSH = {
        "ref": "refs/heads/main", "repository": {"default_branch": "main"},
        "commits": [{"added": ["content/a.md"]}],
    }  # fmt: skip

    def test_a_delivery_with_an_id_is_taken_once(self, web, store):
        given = {"x-github-event": "push", "x-github-delivery": "d-1"}
        first, again = (send(web, "github", self.PUSH, given) for _ in range(2))

        assert (first.json["accepted"], again.json["accepted"]) == (1, 0)
        assert again.json["duplicate"]
        assert again.json["ids"] == first.json["ids"]
        assert again.status_code == 200
        assert store.xlen("{demo}:inbox") == 1

    def test_without_an_id_equal_bodies_are_two_deliveries(self, web, store):
        body = {"event": "entry.publish", "model": "article",
                "entry": {"documentId": "d", "slug": "a"}}  # fmt: skip
        assert [send(web, "strapi", body).json["accepted"] for _ in range(2)] == [1, 1]
        assert store.xlen("{demo}:inbox") == 2

    def test_an_id_that_two_bodies_share_is_no_reason_to_lose_one(self, web):
        """WooCommerce gives all that one webhook delivers in a second the same (WEBHOOKS 1.2)."""
        given = {"x-wc-webhook-topic": "product.deleted", "x-wc-webhook-delivery-id": "same"}
        taken = [send(web, "woocommerce", {"id": n}, given).json["accepted"] for n in (1, 2, 2)]

        assert taken == [1, 1, 0]

    def test_equal_ids_of_two_senders_do_not_meet(self, web):
        push = {"x-github-event": "push", "x-github-delivery": "same"}
        shop = {"x-wc-webhook-topic": "product.deleted", "x-wc-webhook-delivery-id": "same"}
        send(web, "github", self.PUSH, push)

        assert send(web, "woocommerce", {"id": 1}, shop).json["accepted"] == 1


class TestLimits:
    @pytest.mark.usefixtures("store")
    def test_a_flood_is_told_to_wait(self, redis_server, tmp_path):
        web = create_app(settings(redis_server.url, tmp_path, rate=0.01)).test_client()
        answers = [send(web, "ghost", GHOST) for _ in range(4)]

        assert answers[0].status_code == 200
        assert answers[-1].status_code == 429
        assert int(answers[-1].headers["Retry-After"]) > 0

    @pytest.mark.usefixtures("store")
    def test_a_full_inbox_is_503(self, redis_server, tmp_path):
        config = settings(redis_server.url_of("web"), tmp_path).model_copy(
            update={"inbox_limit": 1}
        )
        web = create_app(config).test_client()

        assert [send(web, "ghost", GHOST).status_code for _ in range(2)] == [200, 503]

    def test_a_store_that_is_down_is_503_and_what_is_ignored_stays_200(
        self, fragile_redis, tmp_path
    ):
        web = create_app(settings(fragile_redis.url, tmp_path)).test_client()
        fragile_redis.send(signal.SIGSTOP)
        down = send(web, "ghost", GHOST)

        assert (down.status_code, down.json["code"]) == (503, "store-down")
        assert down.headers["Retry-After"]
        assert send(web, "ghost", {"event": "member.added"}).status_code == 200


class TestCloudEventsAmongEvents:
    ADDRESS = "/v1/sites/demo/events"
    CLOUD = {"specversion": "1.0", "id": "e1", "source": "/cms", "type": "page.published",
             "data": {"loc": SITE + "/a", "id": 7}}  # fmt: skip
    TOKENED = {"authorization": f"Bearer {TOKEN}", "content-type": "application/cloudevents+json"}

    def post(self, web: Any, body: Any, **headers: str) -> Any:
        return web.post(self.ADDRESS, data=json.dumps(body), headers={**self.TOKENED, **headers})

    def test_a_structured_one_is_stored_once(self, web, store):
        first, again = (self.post(web, self.CLOUD) for _ in range(2))

        assert (first.status_code, again.status_code) == (202, 200)
        assert stored(store) == [{
            "v": 1, "type": "upsert", "loc": SITE + "/a", "id": "7", "source": "cloudevents",
            "kind": "/cms",
        }]  # fmt: skip

    def test_the_same_id_with_other_content_is_a_conflict(self, web):
        self.post(web, self.CLOUD)

        assert self.post(web, {**self.CLOUD, "type": "page.deleted"}).status_code == 409

    def test_a_batch_is_taken_whole_or_not_at_all(self, web):
        kind = {"content-type": "application/cloudevents-batch+json"}
        bad = {**self.CLOUD, "source": ""}
        refused = self.post(web, [self.CLOUD, bad], **kind)

        assert refused.status_code == 422
        assert [(fault["item"], fault["field"]) for fault in refused.json["errors"]] == [
            (1, "source")
        ]
        assert self.post(web, [self.CLOUD, self.CLOUD], **kind).json["accepted"] == 2

    @pytest.mark.parametrize(
        "version", [(1 << 47) - 1, 1_795_256_430, 1_795_256_430_000_000, 1_795_256_430_000_000_000]
    )
    def test_a_version_in_another_unit_is_refused_by_the_address_of_events(self, web, version):
        """RELIABILITY T37: native and CloudEvents alike, with the unit."""
        data = {**self.CLOUD["data"], "version": version}
        plain = {"content-type": "application/json"}
        refused = [
            self.post(web, {"type": "upsert", **data}, **plain),
            self.post(web, {**self.CLOUD, "data": data}),
        ]

        for answer in refused:
            (fault,) = answer.json["errors"]
            assert (answer.status_code, fault["field"]) == (422, "version")
            assert fault["detail"].startswith(f"version is milliseconds since 1970; {version} ")

    def test_a_binary_one_has_its_context_in_headers(self, web, store):
        context = {f"ce-{name}": self.CLOUD[name] for name in ("specversion", "id", "source")}
        kind = {
            "content-type": "application/json",
            "ce-type": "page.deleted",
            "ce-subject": "a%2Fb",
        }
        response = self.post(web, {}, **context, **kind)

        assert response.status_code == 202
        assert stored(store)[0]["id"] == "a/b"


SDK_FORMS = {
    "structured": http.to_structured_event,
    "binary": http.to_binary_event,
    "structured of v1": lambda event: conversion.to_structured(of_v1(event)),
    "binary of v1": lambda event: conversion.to_binary(of_v1(event)),
}


def of_v1(event: CloudEvent) -> FormerCloudEvent:
    """The same event by the interface that the SDK had before, and still has."""
    said = event.get_attributes()
    return FormerCloudEvent({**said, "time": said["time"].isoformat()}, event.get_data())


@pytest.mark.parametrize("address", ["events", "hooks/cloudevents"])
@pytest.mark.parametrize("form", SDK_FORMS)
class TestCloudEventsOfTheSdk:
    """As the official SDK of Python builds them, with a token."""

    def post(self, web: Any, address: str, form: str, event: CloudEvent) -> Any:
        made = SDK_FORMS[form](event)
        headers, body = made if isinstance(made, tuple) else (made.headers, made.body)
        headers = {**headers, "authorization": f"Bearer {TOKEN}"}
        body = body or b""
        length = {"CONTENT_LENGTH": str(len(body))}  # of an empty body the client says none
        return web.post(
            f"/v1/sites/demo/{address}", data=body, headers=headers, environ_overrides=length
        )

    def event(self, kind: str, data: Any = None) -> CloudEvent:
        return CloudEvent({"type": kind, "source": "/cms", "subject": "7"}, data)

    def test_a_page_comes_and_its_delete_needs_no_data(self, web, store, address, form):
        for event in (
            self.event("page.published", {"loc": SITE + "/a"}), self.event("page.deleted"),
        ):  # fmt: skip
            reply = self.post(web, address, form, event)
            assert reply.status_code in (200, 202), reply.json
            assert reply.json["accepted"] == 1, reply.json

        first, last = stored(store)
        assert (first["type"], first["id"], first["loc"]) == ("upsert", "7", SITE + "/a")
        assert (last["type"], last["id"], last["kind"]) == ("delete", "7", "/cms")

    def test_a_repeated_one_lists_no_deleted_page_again(self, web, store, address, form):
        published = self.event("page.published", {"loc": SITE + "/a"})
        self.post(web, address, form, published)
        self.post(web, address, form, self.event("page.deleted"))

        again = self.post(web, address, form, published)

        assert again.json["duplicate"] is True
        assert [event["type"] for event in stored(store)] == ["upsert", "delete"]


def test_a_far_version_of_a_cms_is_left_out_and_said_and_its_page_taken(web, store):
    """RELIABILITY T37: a CMS cannot mend what it sends, and stops sending to who refuses it."""
    item = {"type": "upsert", "loc": SITE + "/a", "id": 7, "version": (1 << 47) - 1}
    response = send(web, "wordpress", item, path="/v1/sites/bare/hooks/wordpress")

    assert (response.status_code, response.json["accepted"]) == (200, 1)
    assert "is in the year 6429" in str(response.json["ignored"])
    ((_, fields),) = store.xrange("{bare}:inbox")
    assert "version" not in json.loads(fields[b"e"])


def test_the_time_of_a_cloud_far_ahead_counts_as_now(web, store):
    cloud = {**TestCloudEventsAmongEvents.CLOUD, "time": "9999-12-31T00:00:00Z"}

    assert TestCloudEventsAmongEvents().post(web, cloud).status_code == 202
    assert stored(store)[0]["version"] <= time.time() * 1000
