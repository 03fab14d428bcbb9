"""Every captured delivery of real CMSes, in order: in the end we list what they had public."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.corpus import CORPUS
from tests.unit.decided import Site
from tests.unit.webhook.sources.delivering import AdapterContext, config, delivered, signed
from webhook.sources.event_builder import BuiltEvents

CAPTURED = CORPUS / "webhooks"

pytestmark = pytest.mark.skipif(not CAPTURED.is_dir(), reason=f"no captured webhooks: {CAPTURED}")


def captured(folder: str) -> Iterator[dict[str, Any]]:
    """The POSTs of one CMS, as they came; a redirect had made GETs of some."""
    for path in sorted((CAPTURED / folder).glob("*.json")):
        record = json.loads(path.read_text(encoding="utf-8"))
        if record["method"] == "POST":
            yield record


class Replay:
    """A site that is told everything, and what was listed after each thing the editor did."""

    def __init__(self, where: AdapterContext) -> None:
        self.where, self.site = where, Site()
        self.listed: dict[str, set[str]] = {}
        self.resyncs: set[str] = set()
        self.ignored: dict[str, set[str]] = {}

    def deliver(self, record: dict[str, Any], body: bytes, **headers: str) -> BuiltEvents:
        label, at = record["label"], record["received_at"]
        hook = signed(self.where.name, body, headers, at=at)
        taken = delivered(hook, self.where, at)
        self.site.take(*taken.events)
        self.listed[label] = {urlsplit(loc).path for loc in self.site.listed}
        if taken.resyncs:
            self.resyncs.add(label)
        self.ignored.setdefault(label, set()).update(taken.ignored)
        return taken


GHOST = {
    "02-draft-edit": set(),
    "03-publish": {"/ghost-alpha/"},
    "04-edit-published": {"/ghost-alpha/"},
    "06-slug-change": {"/ghost-renamed/"},
    "08-visibility-members": {"/ghost-renamed/"},
    "09-canonical-url": set(),
    "10-tag-attach": set(),
    "11-unpublish": set(),
    "12-republish": set(),
    "13-delete-published": set(),
    "14-publish-direct": {"/direct/"},
    "15-publish-same-slug": {"/direct/", "/direct-2/"},
    "16-schedule": {"/direct/", "/direct-2/"},
    "17-schedule-fires": {"/direct/", "/direct-2/", "/sched/"},
    "18-page-publish": {"/direct/", "/direct-2/", "/sched/", "/about-2/"},
    "19-page-slug": {"/direct/", "/direct-2/", "/sched/", "/about-us/"},
    "24-post-to-draft-then-delete": {"/direct/", "/direct-2/", "/sched/", "/about-us/"},
    "31-listener-410": {
        "/direct/", "/direct-2/", "/sched/", "/about-us/", "/mode-500/", "/mode-302/",
        "/mode-slow-6/", "/gone/",
    },
}  # fmt: skip


@pytest.mark.parametrize(("folder", "port"), [("ghost-5", 2368), ("ghost-6", 2369)])
def test_ghost_lists_after_each_action_what_was_public(folder: str, port: int) -> None:
    replay = Replay(config("ghost", f"http://127.0.0.1:{port}"))
    for record in captured(folder):
        taken = replay.deliver(record, record["body_raw"].encode())
        alone = record["body_json"].keys() <= {"event"}
        assert len(taken.resyncs) == alone
        stored = "".join(event.dump().decode() for event in taken.events)
        assert "example.test" not in stored
        assert "Ed Itor" not in stored

    assert {label: replay.listed[label] for label in GHOST} == GHOST
    # Bulk actions name nothing: they are what a comparison is asked for (WEBHOOKS 1.5).
    assert "22-bulk-unpublish" in replay.resyncs
    assert replay.listed["22-bulk-unpublish"] == GHOST["19-page-slug"]


def test_deliveries_of_ghost_in_any_order_within_an_action_end_the_same() -> None:
    replay = Replay(config("ghost", "http://127.0.0.1:2368"))
    actions: dict[str, list[dict[str, Any]]] = {}
    for record in captured("ghost-5"):
        actions.setdefault(record["label"], []).append(record)
    for records in actions.values():
        for record in reversed(records):
            replay.deliver(record, record["body_raw"].encode())

    # The last one left a draft and its publication in one action, told apart by their times.
    assert {label: replay.listed[label] for label in GHOST} == GHOST


STRAPI = {
    "02-edit-draft": set(),
    "03-publish": {"/en/blog/strapi-alpha"},
    "04-edit-after-publish-draft-only": {"/en/blog/strapi-alpha"},
    "06-slug-change-draft": {"/en/blog/strapi-alpha"},
    "07-slug-change-publish": {"/en/blog/strapi-renamed"},
    "09-fr-draft": {"/en/blog/strapi-renamed"},
    "10-fr-publish": {"/en/blog/strapi-renamed", "/fr/blog/alpha-fr"},
    "11-unpublish-fr": {"/en/blog/strapi-renamed"},
    "12-publish-fr-again": {"/en/blog/strapi-renamed", "/fr/blog/alpha-fr"},
    "13-discard-draft": {"/en/blog/strapi-renamed", "/fr/blog/alpha-fr"},
    "14-delete-locale-fr": {"/en/blog/strapi-renamed"},
    "15-unpublish": set(),
    "16-publish": {"/en/blog/strapi-renamed"},
    "17-delete-published-doc": set(),
    "18-create-and-publish-in-one": {"/en/blog/one", "/en/blog/two"},
    "19-bulk-unpublish": set(),
    "20-bulk-publish": {"/en/blog/one", "/en/blog/two"},
    "21-bulk-delete": set(),
    "22-test-button": set(),
    # The row is published before its creation is heard of.
    "30-listener-slow12": {
        "/en/blog/m-500", "/en/blog/m-302", "/en/blog/m-410", "/en/blog/m-slow-12"
    },
}  # fmt: skip


def test_strapi_lists_after_each_action_what_was_public() -> None:
    where = config("strapi", permalinks={"article": "/{locale}/blog/{slug}"})
    replay = Replay(where)
    for record in captured("strapi-5"):
        replay.deliver(record, record["body_raw"].encode())

    assert {label: replay.listed[label] for label in STRAPI} == STRAPI
    assert replay.ignored["22-test-button"] == {"trigger-test: not about an entry"}
