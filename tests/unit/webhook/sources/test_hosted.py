"""Shops, self-hosted CMSes, repositories and CloudEvents: what each of their events means."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from shared.errors import InvalidError
from tests.unit.webhook.sources.delivering import (
    NOW,
    SITE,
    config,
    delivered,
    keys,
    said,
    signed,
)
from tests.unit.webhook.sources.test_headless import taken
from webhook.problems import RefusedError
from webhook.sources import cloudevents, woocommerce
from webhook.sources.adapter import Delivery
from webhook.sources.registry import REGISTRY

PERSONAL = {"author": {"email": "e@x.example"}, "customer": "Jane Doe", "email": "e@x.example"}


class TestShopify:
    PRODUCT = {
        "id": 42, "handle": "mug", "status": "active", "published_at": "2026-01-01T00:00:00Z",
        "updated_at": "2026-11-20T10:00:00-05:00", "title": "Mug", "vendor": "e@x.example",
        "images": [{"src": "https://cdn.shopify.com/a.jpg"}, {"src": None}],
    }  # fmt: skip

    @pytest.mark.parametrize("action", ["create", "update"])
    def test_a_product_in_the_shop(self, action):
        found = taken(config("shopify"), self.PRODUCT, x_shopify_topic=f"products/{action}")
        (event,) = found.events

        assert said([event]) == [("upsert", SITE + "/products/mug")]
        assert (event.id, event.kind, event.lastmod) == ("42", "product", "2026-11-20T15:00:00Z")
        assert event.images == ({"loc": "https://cdn.shopify.com/a.jpg"},)
        assert b"x.example" not in event.dump()

    @pytest.mark.parametrize("change", [{"status": "draft"}, {"published_at": None}])
    def test_one_that_is_not(self, change):
        found = taken(config("shopify"), self.PRODUCT | change, x_shopify_topic="products/update")

        assert said(found.events) == [("delete", "42")]

    def test_a_deleted_one_is_its_id(self):
        found = taken(config("shopify"), {"id": 42}, x_shopify_topic="products/delete")

        assert said(found.events) == [("delete", "42")]

    def test_a_collection(self):
        body = {"id": 1, "handle": "new", "published_at": "2026-01-01T00:00:00Z"}
        found = taken(config("shopify"), body, x_shopify_topic="collections/update")

        assert said(found.events) == [("upsert", SITE + "/collections/new")]

    @pytest.mark.parametrize("topic", ["orders/create", "customers/update", "", "products/x"])
    def test_orders_and_customers_are_not_even_read(self, topic):
        found = taken(config("shopify"), b"{ no json", x_shopify_topic=topic)

        assert found.ignored
        assert not found.events

    def test_a_repeated_delivery_is_as_old_as_what_triggered_it(self):
        when = {"x_shopify_triggered_at": "2026-11-21T06:20:30Z"}
        found = taken(config("shopify"), self.PRODUCT, x_shopify_topic="products/update", **when)

        assert found.events[0].version == int(NOW * 1000) - 4 * 3_600_000

    def test_a_clock_that_runs_ahead_does_not_win_for_ever(self):
        when = {"x_shopify_triggered_at": "2099-01-01T00:00:00Z"}
        found = taken(config("shopify"), self.PRODUCT, x_shopify_topic="products/update", **when)

        assert found.events[0].version == int(NOW * 1000)

    def test_a_permalink_of_the_site_goes_before_the_usual_one(self):
        where = config("shopify", permalinks={"product": "/shop/{handle}"})
        found = taken(where, self.PRODUCT, x_shopify_topic="products/update")

        assert said(found.events) == [("upsert", SITE + "/shop/mug")]


class TestWooCommerce:
    PRODUCT = {
        "id": 42, "status": "publish", "permalink": SITE + "/product/mug/", "name": "Mug",
        "catalog_visibility": "visible", "date_modified_gmt": "2026-11-20T10:00:00",
        "images": [{"src": SITE + "/a.jpg"}],
    }  # fmt: skip

    @pytest.mark.parametrize("action", ["created", "updated", "restored"])
    def test_a_product_that_is_public(self, action):
        body = self.PRODUCT | PERSONAL
        found = taken(config("woocommerce"), body, x_wc_webhook_topic=f"product.{action}")
        (event,) = found.events

        assert said([event]) == [("upsert", SITE + "/product/mug/")]
        assert (event.lastmod, len(event.images)) == ("2026-11-20T10:00:00Z", 1)
        assert b"x.example" not in event.dump()

    @pytest.mark.parametrize("change", [
        {"status": "draft"}, {"status": "private"}, {"catalog_visibility": "hidden"},
        {"post_password": "x"}, {"permalink": SITE + "/?post_type=product&p=42"},
        {"permalink": SITE + "/product/mug__trashed/"},
    ])  # fmt: skip
    def test_one_that_is_not(self, change):
        body = self.PRODUCT | change
        found = taken(config("woocommerce"), body, x_wc_webhook_topic="product.updated")

        assert said(found.events) == [("delete", "42")]

    def test_a_deleted_one_is_its_id(self):
        found = taken(config("woocommerce"), {"id": 42}, x_wc_webhook_topic="product.deleted")

        assert said(found.events) == [("delete", "42")]

    @pytest.mark.parametrize("topic", ["order.created", "customer.updated", "product.x", ""])
    def test_orders_and_customers_are_not_even_read(self, topic):
        assert taken(config("woocommerce"), b"{ no json", x_wc_webhook_topic=topic).ignored

    @pytest.mark.parametrize(("kind", "body", "ping"), [
        ("application/x-www-form-urlencoded", b"webhook_id=1", True),
        ("application/x-www-form-urlencoded; charset=utf-8", b"webhook_id=17", True),
        ("application/x-www-form-urlencoded", b"webhook_id=1&a=b", False),
        ("application/json", b"webhook_id=1", False),
        ("application/x-www-form-urlencoded", b"", False),
    ])  # fmt: skip
    def test_its_greeting_is_known(self, kind, body, ping):
        assert woocommerce.is_ping(Delivery("POST", "/", {"content-type": kind}, body)) is ping


class TestGhost:
    def test_a_post_mailed_only_has_no_page(self):
        current = {"id": "p", "status": "sent", "url": SITE + "/email/u/"}

        assert said(taken(config("ghost"), {"post": {"current": current}}).events) == [
            ("delete", "p")
        ]

    def test_a_page_without_an_address_has_none(self):
        current = {"id": "p", "status": "published", "url": SITE + "/404/"}

        assert said(taken(config("ghost"), {"page": {"current": current}}).events) == [
            ("delete", "p")
        ]

    def test_tags_are_listed_by_their_slugs_where_that_is_wanted(self):
        where = config("ghost", permalinks={"tag": "/tag/{slug}/"})
        current = {
            "id": "t",
            "slug": "newsroom",
            "url": SITE + "/tag/news/",
            "visibility": "public",
        }
        found = taken(where, {"tag": {"current": current, "previous": {"slug": "news"}}})
        hidden = taken(where, {"tag": {"current": current | {"visibility": "internal"}}})

        assert said(found.events) == [("upsert", SITE + "/tag/newsroom/")]
        assert said(hidden.events) == [("delete", "t")]

    def test_the_name_of_an_event_goes_before_what_a_post_seems_to_be(self):
        current = {"id": "p", "status": "published", "url": SITE + "/a/"}
        body = {"event": "post.unpublished", "post": {"current": current}}

        assert said(taken(config("ghost"), body).events) == [("delete", "p")]

    @pytest.mark.parametrize("current", [{}, {"id": "p", "slug": "now", "status": "draft"}])
    def test_what_was_public_is_taken_off_by_its_address_too(self, current):
        where = config("ghost", permalinks={"post": "/{slug}/"})
        before = {"id": "p", "slug": "was", "status": "published"}
        body = {"post": {"current": current, "previous": before}}
        (event,) = taken(where, body).events
        draft = {"post": {"current": {}, "previous": before | {"status": "draft"}}}
        (never,) = taken(where, draft).events

        assert (event.type, event.id, event.loc) == ("delete", "p", SITE + "/was/")
        assert (never.type, never.id, never.loc) == ("delete", "p", None)

    @pytest.mark.parametrize("body", [{"member": {}}, {"post": {}}, {"post": None}, {"x": 1}])
    def test_the_rest_is_ignored(self, body):
        assert taken(config("ghost"), body).ignored


class TestStrapi:
    def test_a_type_without_drafts_is_public_at_once(self):
        where = config("strapi", permalinks={"faq": "/faq/{slug}"})
        entry = {"documentId": "d", "slug": "a", "publishedAt": "2026-11-20T10:00:00.000Z"}
        found = taken(where, {"event": "entry.create", "model": "faq", "entry": entry})

        assert said(found.events) == [("upsert", SITE + "/faq/a")]

    def test_a_type_that_is_ignored_is_not_deleted_either(self):
        where = config("strapi", ignore=["author"])
        entry = {"documentId": "d"}
        found = taken(where, {"event": "entry.delete", "model": "author", "entry": entry})

        assert (found.events, found.ignored) == ([], ["author is in ignore"])

    @pytest.mark.parametrize("action", ["unpublish", "delete"])
    def test_what_was_public_is_taken_off_by_its_address_too(self, action):
        where = config("strapi", permalinks={"faq": "/{locale}/faq/{slug}"})
        entry = {"documentId": "d", "slug": "a", "locale": "de", "publishedAt": "2026-11-20"}
        body = {"event": f"entry.{action}", "model": "faq", "entry": entry}
        (event,) = taken(where, body).events
        (draft,) = taken(where, body | {"entry": entry | {"publishedAt": None}}).events

        assert (event.type, event.id, event.loc) == ("delete", "d", SITE + "/de/faq/a")
        assert (draft.type, draft.id, draft.loc) == ("delete", "d", None)

    @pytest.mark.parametrize(
        ("made", "version"),
        [(NOW - 2, int((NOW - 2) * 1000)), (NOW - 301, None), (NOW + 301, None), (None, None)],
    )
    def test_its_version_is_when_it_was_begun_by_a_clock_that_can_be_right(self, made, version):
        where = config("strapi", permalinks={"faq": "/faq/{slug}"})
        entry = {"documentId": "d", "slug": "a"}
        body = {"event": "entry.publish", "model": "faq", "entry": entry}
        if made is not None:
            body["createdAt"] = datetime.fromtimestamp(made, UTC).isoformat()
        (event,) = taken(where, body).events

        assert event.version == version

    def test_media_is_no_page(self):
        assert taken(config("strapi"), {"event": "media.create", "media": {}}).ignored


class TestDirectus:
    WHERE = config("directus", permalinks={"articles": "/blog/{slug}"})

    def flow(self, event: str, items: Any = None, **trigger: Any) -> Any:
        body = {"trigger": {"event": f"articles.items.{event}", "collection": "articles",
                            **trigger}, "items": items}  # fmt: skip
        return taken(self.WHERE, body)

    def test_what_was_read_says_what_an_item_is(self):
        rows = [{"id": 2, "slug": "b", "status": "published", "user_created": PERSONAL},
                {"id": 3, "slug": "c", "status": "draft"}]  # fmt: skip
        found = self.flow("update", rows, keys=[2, 3, 4], payload={})

        assert said(found.events) == [("upsert", SITE + "/blog/b"), ("delete", "3")]
        assert "Read Data" in found.ignored[0]
        assert b"x.example" not in found.events[0].dump()

    @pytest.mark.parametrize("keys", [{"keys": ["1"]}, {"keys": [1]}, {"key": 1}, {"key": "1"}])
    def test_a_key_is_one_whether_text_or_number(self, keys):
        found = self.flow("delete", **keys)

        assert said(found.events) == [("delete", "1")]

    def test_a_collection_without_a_status_is_public(self):
        found = self.flow("create", {"id": 1, "slug": "a"}, key=1)

        assert said(found.events) == [("upsert", SITE + "/blog/a")]

    def test_a_change_alone_says_too_little(self):
        assert self.flow("update", None, keys=["1"], payload={"slug": "z"}).ignored
        assert self.flow("update", None, keys=["1"], payload={"status": "published"}).ignored

    @pytest.mark.parametrize("payload", [{"title": "x"}, {"slug": "z", "status": "published"}])
    def test_a_step_that_was_refused_is_named_as_that(self, payload):
        """What Directus 11.16 passes on where the step has IDs that it cannot read."""
        read = {"message": "You don't have permission", "code": "FORBIDDEN", "extensions": {}}

        found = self.flow("update", read, keys=["1"], payload=payload)

        assert not found.events
        assert "Read Data was refused, FORBIDDEN" in found.ignored[0]

    def test_but_a_status_that_hides_an_item_is_enough(self):
        found = self.flow("update", None, keys=["1"], payload={"status": "archived"})

        assert said(found.events) == [("delete", "1")]

    def test_files_are_no_pages(self):
        assert taken(self.WHERE, {"trigger": {"event": "files.upload", "key": "x"}}).ignored


class TestPayload:
    WHERE = config("payload", permalinks={"posts": "/{locale}/{slug}"}, locales=["en", "de"])
    ONE = config("payload", permalinks={"posts": "/{slug}"})
    DOC = {"id": 5, "slug": {"en": "a", "de": "b"}, "_status": "published",
           "updatedAt": "2026-11-20T10:00:00.000Z"}  # fmt: skip

    def saved(self, where: Any = WHERE, operation: str = "change", **doc: Any) -> Any:
        body = {"operation": operation, "collection": "posts", "doc": self.DOC | doc}
        return taken(where, body)

    def test_a_published_document_in_every_language(self):
        english, german = self.saved().events

        assert said([english, german]) == [("upsert", SITE + "/en/a"), ("upsert", SITE + "/de/b")]
        assert (german.id, german.kind, german.locale) == ("5", "posts", "de")
        assert german.lastmod == "2026-11-20T10:00:00Z"

    def test_a_language_without_a_slug_is_not_public(self):
        found = self.saved(slug={"en": "a"})

        assert said(found.events) == [("upsert", SITE + "/en/a"), ("delete", "5")]

    def test_a_slug_for_all_languages(self):
        found = self.saved(slug="a")

        assert said(found.events) == [("upsert", SITE + "/en/a"), ("upsert", SITE + "/de/a")]

    def test_a_draft_is_public_in_no_language(self):
        assert said(self.saved(_status="draft").events) == [("delete", "5")] * 2

    def test_a_status_of_each_language(self):
        """With Payload's experimental `localizeStatus`."""
        found = self.saved(_status={"en": "published", "de": "draft"})

        assert said(found.events) == [("upsert", SITE + "/en/a"), ("delete", "5")]

    def test_a_deletion_goes_for_every_language(self):
        found = self.saved(operation="delete")

        assert [(e.type, e.locale) for e in found.events] == [("delete", "en"), ("delete", "de")]

    def test_a_site_of_one_language_has_one_page(self):
        assert said(self.saved(self.ONE, slug="a").events) == [("upsert", SITE + "/a")]
        assert said(self.saved(self.ONE, operation="delete").events) == [("delete", "5")]

    def test_languages_that_are_not_configured_are_asked_for(self):
        found = self.saved(self.ONE)

        assert not found.events
        assert "add locales" in found.ignored[0]


class TestDrupal:
    def test_a_node_as_core_writes_it(self):
        entity = {
            "nid": [{"value": 7}], "uuid": [{"value": "u-7"}], "langcode": [{"value": "de"}],
            "type": [{"target_id": "article"}], "status": [{"value": True}],
            "changed": [{"value": "2026-11-20T10:00:00+00:00"}],
            "path": [{"alias": "/blog/ä", "pid": 1, "langcode": "de"}],
            "uid": [{"target_id": 1, "url": "/user/jane"}],
        }  # fmt: skip
        body = {"event": "entity:node:update", "entity": entity}
        (event,) = taken(config("drupal"), body).events

        assert said([event]) == [("upsert", SITE + "/blog/%C3%A4")]
        assert (event.id, event.kind, event.locale) == ("u-7", "node", "de")
        assert event.lastmod == "2026-11-20T10:00:00Z"

    NODE = {
        "type": "node--article", "id": "u-7",
        "attributes": {"status": True, "drupal_internal__nid": 7, "langcode": "en",
                       "changed": "2026-11-20T10:00:00+00:00", "path": {"alias": None}},
    }  # fmt: skip

    def sent(self, event: str, **attributes: Any) -> Any:
        node = self.NODE | {"attributes": self.NODE["attributes"] | attributes}
        return taken(config("drupal"), {"data": node}, x_drupal_webhooks_event=event)

    def test_a_node_as_json_api_writes_it_without_an_alias(self):
        assert said(self.sent("entity:node:create").events) == [("upsert", SITE + "/node/7")]

    @pytest.mark.parametrize("prefix", ["x-drupal-", "x-drupal-webhooks-"])
    def test_the_module_names_event_and_delivery_in_headers(self, prefix):
        """The first since 8.x-1.0-alpha4, the second before."""
        given = {f"{prefix}event": "entity:node:update", f"{prefix}delivery": "u-1"}
        hook = signed("drupal", {"data": self.NODE}, given)

        assert said(delivered(hook, config("drupal")).events) == [("upsert", SITE + "/node/7")]
        assert REGISTRY["drupal"].verify(hook, keys("drupal"), NOW).delivery == "u-1"

    @pytest.mark.parametrize(("event", "status"), [("delete", True), ("update", False)])
    def test_a_node_that_is_not_public(self, event, status):
        found = self.sent(f"entity:node:{event}", status=status)

        assert said(found.events) == [("delete", "u-7")]

    @pytest.mark.parametrize("event", ["entity:user:update", "entity:node:presave", "x", ""])
    def test_users_are_not_even_read(self, event):
        assert self.sent(event).ignored


class TestGitHub:
    WHERE = config(
        "github",
        permalinks={"content/posts/{slug}.md": "/blog/{slug}/", "content/{p:path}.md": "/{p}/"},
    )

    def push(self, *commits: dict[str, Any], **rest: Any) -> Any:
        body = {
            "ref": "refs/heads/main", "repository": {"default_branch": "main"},
            "commits": [{"author": PERSONAL, "timestamp": "2026-11-20T10:00:00Z", **c}
                        for c in commits], "pusher": PERSONAL, **rest,
        }  # fmt: skip
        return taken(self.WHERE, body, x_github_event="push")

    def test_files_become_pages(self):
        found = self.push(
            {"added": ["content/posts/a.md", "README.md"], "modified": ["content/x/y.md"]},
            {"removed": ["content/posts/b.md"], "added": []},
        )

        assert said(found.events) == [
            ("upsert", SITE + "/blog/a/"), ("upsert", SITE + "/x/y/"),
            ("delete", "content/posts/b.md"),
        ]  # fmt: skip
        assert found.events[0].lastmod == "2026-11-20T10:00:00Z"
        assert all(b"x.example" not in event.dump() for event in found.events)

    def test_the_last_commit_of_a_push_counts(self):
        path = ["content/posts/a.md"]
        found = self.push({"added": path}, {"removed": path}, {"added": path}, {"modified": path})
        gone = self.push({"modified": path}, {"removed": path})

        assert said(found.events) == [("upsert", SITE + "/blog/a/")]
        assert said(gone.events) == [("delete", path[0])]

    @pytest.mark.parametrize("rest", [{"forced": True}, {"deleted": True}])
    def test_a_push_that_does_not_list_its_changes_asks_for_a_comparison(self, rest):
        assert self.push(**rest).resyncs

    def test_other_branches_and_events_are_ignored(self):
        assert self.push(ref="refs/heads/draft").ignored
        assert taken(self.WHERE, {"zen": "x"}, x_github_event="ping").ignored
        assert self.push({"added": ["LICENSE"]}).ignored

    def test_more_files_than_a_delivery_may_hold_ask_for_a_comparison(self):
        found = self.push({"added": [f"content/{n}.md" for n in range(1001)]})

        assert (len(found.events), len(found.resyncs)) == (1001, 1)
        assert found.events[-1].type == "resync"


class TestCloudEvents:
    CONTEXT = {"specversion": "1.0", "id": "e1", "source": "/cms", "type": "com.x.page.updated"}
    DATA = {"loc": SITE + "/a"}

    def sent(self, body: Any, kind: str = cloudevents.STRUCTURED, **headers: str) -> Any:
        named = {"content-type": kind, **{n.replace("_", "-"): v for n, v in headers.items()}}
        return delivered(signed("cloudevents", body, named), config("cloudevents"))

    def test_structured(self):
        body = self.CONTEXT | {"data": self.DATA, "subject": "7", "time": "2026-11-21T10:20:00Z"}
        (event,) = self.sent(body).events

        assert said([event]) == [("upsert", SITE + "/a")]
        assert (event.id, event.kind, event.version) == ("7", "/cms", 1_795_256_400_000)

    def test_batched_where_one_bad_event_keeps_no_other_out(self):
        good, bad = self.CONTEXT | {"data": self.DATA}, self.CONTEXT | {"specversion": "0.3"}
        found = self.sent([good, bad, 7], cloudevents.BATCH)

        assert said(found.events) == [("upsert", SITE + "/a")]
        assert "specversion: must be 1.0" in found.ignored[0]

    def test_binary_with_escaped_attributes(self):
        context = {f"ce_{name}": value for name, value in self.CONTEXT.items()}
        found = self.sent(
            {}, "application/json", **context | {"ce_type": "page.deleted", "ce_subject": "a%20b"}
        )

        assert said(found.events) == [("delete", "a b")]

    @pytest.mark.parametrize("last", ["upsert", "created", "updated", "published", "Changed"])
    def test_the_type_of_an_event_may_come_from_its_own(self, last):
        body = self.CONTEXT | {"type": f"cms.{last}", "data": self.DATA}

        assert self.sent(body).events[0].type == "upsert"

    @pytest.mark.parametrize("change", [
        {"id": ""}, {"id": None}, {"source": 5}, {"type": ""}, {"data_base64": "AAAA"},
        {"data": "x"}, {"specversion": "1.0.1"}, {"subject": 7},
    ])  # fmt: skip
    def test_what_is_no_cloudevent_is_said_to_be_none(self, change):
        body = self.CONTEXT | {"data": self.DATA} | change

        assert self.sent(body).ignored
        with pytest.raises(InvalidError):
            cloudevents.changes(cloudevents.read(signed("cloudevents", body,
                                {"content-type": cloudevents.STRUCTURED})))  # fmt: skip

    def test_without_context_there_is_no_event(self):
        with pytest.raises(RefusedError):
            self.sent(self.DATA, "application/json")
        with pytest.raises(RefusedError):
            self.sent([self.CONTEXT, self.CONTEXT])

    def test_a_single_event_is_known_by_its_source_and_id(self):
        events = [cloudevents.Cloud(self.CONTEXT, {})]

        assert cloudevents.delivery(events) == "/cms e1"
        assert cloudevents.delivery(events * 2) is None
