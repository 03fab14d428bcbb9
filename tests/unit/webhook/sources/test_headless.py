"""Headless CMSes: entries without addresses, in several languages, and tombstones."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.webhook.sources.delivering import NOW, SITE, config, delivered, said, signed
from webhook.sources.adapter import AdapterContext
from webhook.sources.event_builder import BuiltEvents


def taken(where: AdapterContext, body: Any, **headers: str) -> BuiltEvents:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return delivered(signed(where.name, body, named), where)


class TestContentful:
    WHERE = config(
        "contentful",
        locales=["en-US", "de", "fr"],
        permalinks={"post": "/{locale}/blog/{slug}", "post:en-US": "/blog/{slug}"},
        sections={"post": "posts"},
    )
    SYS = {
        "id": "e1", "updatedAt": "2026-11-20T10:00:00.123Z",
        "contentType": {"sys": {"id": "post"}}, "createdBy": {"sys": {"id": "someone"}},
    }  # fmt: skip

    def publication(self, **fields: Any) -> dict[str, Any]:
        return {"sys": self.SYS, "fields": fields}

    def sent(self, topic: str, body: Any) -> BuiltEvents:
        # The topic is not among the headers that these deliveries sign.
        hook = signed("contentful", body, {"x-contentful-topic": "ContentManagement." + topic})
        return delivered(hook, self.WHERE)

    def test_an_entry_has_a_page_in_each_language_with_a_slug(self):
        body = self.publication(slug={"en-US": "a", "de": "ä b"}, title={"fr": "t"})
        found = self.sent("Entry.publish", body)

        assert said(found.events) == [
            ("upsert", SITE + "/blog/a"),
            ("upsert", SITE + "/de/blog/%C3%A4%20b"),
            ("delete", "e1"),
        ]
        assert [event.locale for event in found.events] == ["en-US", "de", "fr"]
        first = found.events[0]
        assert (first.source, first.kind, first.section) == ("contentful", "entry", "posts")
        assert first.lastmod == "2026-11-20T10:00:00Z"
        assert first.version == int(NOW * 1000)
        assert not found.ignored

    @pytest.mark.parametrize("topic", ["Entry.unpublish", "Entry.delete", "Entry.archive"])
    def test_a_tombstone_takes_every_language_away(self, topic):
        found = self.sent(topic, {"sys": {"id": "e1", "type": "DeletedEntry"}})

        assert said(found.events) == [("delete", "e1")] * 3
        assert {event.locale for event in found.events} == {"en-US", "de", "fr"}
        assert {event.kind for event in found.events} == {"entry"}

    @pytest.mark.parametrize("topic", ["Entry.save", "Entry.auto_save", "Asset.publish", "x"])
    def test_what_makes_nothing_public_is_ignored(self, topic):
        found = self.sent(topic, self.publication(slug={"de": "a"}))

        assert not found.events
        assert found.ignored

    def test_a_type_without_a_permalink_is_named(self):
        body = self.publication(slug={"de": "a"})
        body["sys"] = {**self.SYS, "contentType": {"sys": {"id": "author"}}}
        found = self.sent("Entry.publish", body)

        assert (
            'add "author" = "/{slug}" to the permalinks of sources.contentful' in found.ignored[0]
        )

    def test_rich_text_may_nest_deeper_than_events_may(self):
        deep: Any = "x"
        for _ in range(40):
            deep = [deep]
        found = self.sent("Entry.publish", self.publication(slug={"de": "a"}, body={"de": deep}))

        assert ("upsert", SITE + "/de/blog/a") in said(found.events)


class TestSanity:
    WHERE = config("sanity", permalinks={"post": "/blog/{slug}"})
    BODY = {
        "_id": "d1", "_type": "post", "_updatedAt": "2026-11-20T10:00:00Z", "slug": "a",
        "title": "T", "noindex": None, "author": {"email": "a@b.example"},
    }  # fmt: skip

    @pytest.mark.parametrize("operation", ["create", "update"])
    def test_a_document_that_is_there(self, operation):
        found = taken(self.WHERE, self.BODY, sanity_operation=operation)

        assert said(found.events) == [("upsert", SITE + "/blog/a")]
        assert found.events[0].title == "T"
        assert b"a@b.example" not in found.events[0].dump()

    def test_one_that_went_has_its_id(self):
        found = taken(self.WHERE, {"_id": "d1", "_type": "post"}, sanity_operation="delete")

        assert said(found.events) == [("delete", "d1")]

    def test_the_language_is_no_part_of_its_identity(self):
        there = taken(self.WHERE, self.BODY | {"locale": "de"}, sanity_operation="update").events[0]
        gone = taken(self.WHERE, {"_id": "d1"}, sanity_operation="delete").events[0]

        assert (there.kind, there.id, there.locale) == (gone.kind, gone.id, gone.locale)

    def test_an_earlier_transaction_has_an_earlier_version(self):
        when = "2026-11-21T10:20:00.000Z"
        found = taken(
            self.WHERE, self.BODY, sanity_operation="update", sanity_transaction_time=when
        )

        assert found.events[0].version == 1_795_256_400_000

    def test_an_address_in_the_projection_needs_no_permalink(self):
        body = {**self.BODY, "_type": "page", "url": SITE + "/about"}

        assert said(taken(self.WHERE, body, sanity_operation="update").events) == [
            ("upsert", SITE + "/about")
        ]

    @pytest.mark.parametrize("number", ["drafts.d1", "versions.r1.d1"])
    def test_drafts_are_left_alone(self, number):
        found = taken(self.WHERE, {**self.BODY, "_id": number}, sanity_operation="update")

        assert not found.events

    def test_noindex_and_a_canonical_elsewhere_are_passed_on(self):
        body = {**self.BODY, "noindex": True, "canonical": "https://other.example/a"}
        (event,) = taken(self.WHERE, body, sanity_operation="update").events

        assert (event.noindex, event.canonical) == (True, "https://other.example/a")

    def test_a_slug_that_was_removed_takes_the_page_away(self):
        found = taken(self.WHERE, {**self.BODY, "slug": None}, sanity_operation="update")

        assert said(found.events) == [("delete", "d1")]
        assert found.ignored == ["post: the payload has no slug, which /blog/{slug} needs"]


class TestStoryblok:
    BODY = {"story_id": 7, "space_id": 1, "full_slug": "de/blog/a", "text": "The user e@x.example"}

    @pytest.mark.parametrize("action", ["published", "story.published"])
    def test_a_story_lies_at_its_full_slug(self, action):
        found = taken(config("storyblok"), {**self.BODY, "action": action})

        assert said(found.events) == [("upsert", SITE + "/de/blog/a")]
        assert b'example"' not in found.events[0].dump().replace(b"www.example", b"")

    @pytest.mark.parametrize("action", ["unpublished", "deleted"])
    def test_without_a_slug_it_goes_by_its_id(self, action):
        body = {"story_id": 7, "action": action}

        assert said(taken(config("storyblok"), body).events) == [("delete", "7")]

    def test_the_start_page_has_an_address_of_its_own(self):
        where = config("storyblok", permalinks={"story:home": "/"})
        found = taken(where, {**self.BODY, "action": "published", "full_slug": "home"})

        assert said(found.events) == [("upsert", SITE + "/")]

    def test_a_move_asks_for_a_comparison(self):
        found = taken(config("storyblok"), {**self.BODY, "action": "moved"})

        assert len(found.resyncs) == 1
        assert [event.type for event in found.events] == ["resync"]

    @pytest.mark.parametrize("body", [{"action": "created", "asset_id": 1}, {}, {"story_id": 1}])
    def test_the_rest_is_ignored(self, body):
        assert taken(config("storyblok"), body).ignored


class TestPrismic:
    def test_every_update_asks_for_a_comparison(self):
        body = {"type": "api-update", "documents": ["W1"], "masterRef": "x"}
        found = taken(config("prismic"), body)

        assert len(found.resyncs) == 1
        assert [event.type for event in found.events] == ["resync"]

    def test_its_test_is_ignored(self):
        assert taken(config("prismic"), {"type": "test-trigger"}).ignored


class TestDatoCms:
    WHERE = config("datocms", permalinks={"blog_post": "/{locale}/{slug}", "plain": "/{slug}"})

    def record(self, slug: Any, **meta: Any) -> dict[str, Any]:
        return {
            "id": "r1", "type": "item", "attributes": {"slug": slug, "editor": "e@x.example"},
            "relationships": {"item_type": {"data": {"id": "m1", "type": "item_type"}}},
            "meta": {"updated_at": "2026-11-20T11:00:00.1+01:00", "status": "published", **meta},
        }  # fmt: skip

    def call(self, event: str, entity: Any, model: str = "blog_post", **rest: Any) -> BuiltEvents:
        body = {
            "entity_type": "item", "event_type": event, "entity": entity, "webhook_call_id": "7",
            "event_triggered_at": "2026-11-21T10:20:00Z", **rest,
            "related_entities": [
                {"id": "m1", "type": "item_type", "attributes": {"api_key": model}}
            ],
        }  # fmt: skip
        return taken(self.WHERE, body)

    def test_a_record_has_a_page_in_each_language(self):
        found = self.call("publish", self.record({"en": "a", "de": "b", "fr": None}))

        assert said(found.events) == [
            ("upsert", SITE + "/en/a"),
            ("upsert", SITE + "/de/b"),
            ("delete", "r1"),
        ]
        assert found.events[0].version == 1_795_256_400_000
        assert found.events[0].lastmod == "2026-11-20T10:00:00Z"
        assert not found.ignored

    def test_a_language_that_was_taken_out_goes(self):
        before = self.record({"en": "a", "de": "b"})
        found = self.call("publish", self.record({"en": "a"}), previous_entity=before)

        assert said(found.events) == [("upsert", SITE + "/en/a"), ("delete", "r1")]
        assert found.events[1].locale == "de"
        assert not found.ignored

    @pytest.mark.parametrize("event", ["unpublish", "delete"])
    def test_one_that_went_goes_in_each_language(self, event):
        found = self.call(event, self.record({"en": "a", "de": "b"}))

        assert [(e.type, e.locale) for e in found.events] == [("delete", "en"), ("delete", "de")]

    def test_a_record_of_one_language(self):
        found = self.call("publish", self.record("a"), "plain")

        assert said(found.events) == [("upsert", SITE + "/a")]

    def test_models_without_drafts_know_no_publication(self):
        assert said(self.call("update", self.record("a"), "plain").events) == [
            ("upsert", SITE + "/a")
        ]
        assert self.call("update", self.record("a", status="updated"), "plain").ignored

    def test_uploads_are_ignored(self):
        assert taken(self.WHERE, {"entity_type": "upload", "event_type": "create"}).ignored


class TestWebflow:
    WHERE = config("webflow", permalinks={"c1": "/blog/{fieldData.slug}"})
    ITEM = {
        "id": "i1", "collectionId": "c1", "cmsLocaleId": "l1", "isDraft": False,
        "isArchived": False, "lastPublished": "2026-11-20T10:00:00.000Z",
        "fieldData": {"name": "A", "slug": "a", "author-email": "e@x.example"},
    }  # fmt: skip

    def test_an_item_that_was_published(self):
        body = {"triggerType": "collection_item_published", "payload": self.ITEM}
        (event,) = taken(self.WHERE, body).events

        assert said([event]) == [("upsert", SITE + "/blog/a")]
        assert (event.locale, event.lastmod, event.title) == ("l1", "2026-11-20T10:00:00Z", "A")

    def test_several_at_once(self):
        payload = {"items": [self.ITEM, {**self.ITEM, "id": "i2", "isArchived": True}]}
        body = {"triggerType": "collection_item_published", "payload": payload}

        assert said(taken(self.WHERE, body).events) == [
            ("upsert", SITE + "/blog/a"), ("delete", "i2")
        ]  # fmt: skip

    @pytest.mark.parametrize("event", ["unpublished", "deleted"])
    def test_an_item_that_went_is_known_by_its_id(self, event):
        payload = {"id": "i1", "siteId": "s", "cmsLocaleId": "l1"}
        body = {"triggerType": f"collection_item_{event}", "payload": payload}
        (gone,) = taken(self.WHERE, body).events

        assert (gone.type, gone.kind, gone.id, gone.locale) == ("delete", "item", "i1", "l1")

    @pytest.mark.parametrize("event", [
        "collection_item_created", "collection_item_changed", "form_submission", "page_created",
        "ecomm_new_order",
    ])  # fmt: skip
    def test_drafts_forms_and_orders_are_ignored(self, event):
        found = taken(self.WHERE, {"triggerType": event, "payload": self.ITEM})

        assert found.ignored
        assert not found.events

    def test_a_publication_of_the_site_asks_for_a_comparison(self):
        assert taken(self.WHERE, {"triggerType": "site_publish", "payload": {}}).resyncs
