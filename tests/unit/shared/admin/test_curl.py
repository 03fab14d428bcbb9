"""A stored event as the native interface takes it again, and the line that sends it."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from typing import Any

import pytest

from shared.admin.curl import curl, lost, native
from shared.admin.outcomes import command, counted
from shared.events.event import Event, parse
from shared.events.event_fields import EventRules
from shared.sitemap.urls import Base

RULES = EventRules(
    Base.parse("https://www.example.com/"), frozenset({"pages", "posts", "news"}),
    frozenset({"news"}), deprecated=True,
)  # fmt: skip
LOC = "https://www.example.com/it's-a-page?a=b&c=d"
VIDEO = {
    "thumbnail_loc": "https://c.example/t.jpg", "title": "T 'quoted' $HOME", "description": "D",
    "content_loc": "https://cdn.example.net/v.mp4", "duration": 60, "tags": ["a", "b"],
    "restriction": {"relationship": "allow", "countries": ["DE", "AT"]},
    "price": [{"value": 1.5, "currency": "EUR"}],
    "uploader": {"name": "U", "info": "https://www.example.com/u"},
}  # fmt: skip
NEWS = {
    "publication": {"name": "The Example", "language": "en"},
    "publication_date": "2026-11-21", "title": "T", "keywords": "a, b",
}  # fmt: skip
EVENTS: list[dict[str, Any]] = [
    {"type": "upsert", "loc": LOC},
    {"type": "upsert", "loc": LOC, "id": 7, "section": "posts", "lastmod": "2026-11-20",
     "version": "2026-11-20T10:00:00Z", "changefreq": "daily", "priority": 0.5, "noindex": True,
     "canonical": "https://other.example/x", "published": "2026-11-01", "title": "\u00fc"},
    {"type": "upsert", "loc": LOC, "videos": [VIDEO], "images": [{"loc": "https://c.example/1"}]},
    {"type": "upsert", "loc": LOC, "section": "news", "news": NEWS},
    {"type": "upsert", "loc": LOC, "group": "g", "lang": ["de", "x-default"]},
    {"type": "upsert", "loc": LOC, "alternates": [{"hreflang": "de", "href": LOC}]},
    {"type": "delete", "id": "x", "version": 0},
    {"type": "resync", "prefix": "https://www.example.com/blog/"},
]  # fmt: skip


@pytest.mark.parametrize("item", EVENTS, ids=" ".join)
def test_an_event_is_taken_again_as_the_very_same(item: dict[str, Any]) -> None:
    event = parse(item, RULES)
    text = curl(event, "demo", "https://www.example.com/")
    words = shlex.split(text)

    assert parse(native(event), RULES) == event
    assert parse(json.loads(words[words.index("--data-binary") + 1]), RULES) == event
    assert words[:3] == ["curl", "-sS", "https://www.example.com/v1/sites/demo/events"]
    assert "authorization: Bearer $SITEMAPD_TOKEN" in words
    assert "#" not in text.split("curl")[0]


def test_what_the_interface_does_not_take_is_said_in_a_comment() -> None:
    event = replace(
        parse({"type": "upsert", "loc": LOC, "id": 7}, RULES),
        source="ghost", kind="po\nst", locale="de",
    )  # fmt: skip

    first, second, line = curl(event, "demo", "http://127.0.0.1:8080").splitlines()

    assert first == (
        '# it came with source "ghost", kind "po\\nst", locale "de", which the HTTP API does '
        "not accept:"
    )
    assert second.startswith("# ")
    assert parse(json.loads(shlex.split(line)[-1]), RULES) == Event("upsert", LOC, "7")
    assert lost(event) == {"source": "ghost", "kind": "po\nst", "locale": "de"}


def test_a_command_is_a_line_that_a_shell_takes_apart_into_the_same_words() -> None:
    words = ("dead", "retry", "--error=it's $(broken)")

    assert shlex.split(command(*words, site="demo")) == ["sitemapd", *words, "--site", "demo"]
    assert (counted(1, "event"), counted(2, "event"), counted(0, "file")) == (
        "1 event", "2 events", "0 files",
    )  # fmt: skip
