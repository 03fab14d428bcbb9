"""Sections and deliveries may have any legal name, and states of other versions are refused."""

from __future__ import annotations

from pathlib import Path

import pytest
import redis

from shared.errors import LayoutError
from shared.store.keys import Keys
from shared.store.layouts.version import CURRENT
from shared.store.pages.page_repository import PageRepository
from shared.store.sections import Draft, Sections
from tests.integration.rig import BASE, Rig, check_keys

WORDS = (
    "seen", "shards", "files", "blocks", "pending", "taking", "loc", "id", "inbox", "dead", "dirty",
    "pulse", "index", "cluster", "notify", "told", "purged", "sections", "counters", "stats",
)  # fmt: skip


def test_sections_and_deliveries_may_have_the_names_of_keys(
    store: redis.Redis, tmp_path: Path
) -> None:
    rig = Rig(store, tmp_path, sections={name: {} for name in WORDS})
    ids = [*WORDS, "pending:1", "blocks:1", "taking:1", "pages:shards"]

    for number, ident in enumerate(ids):
        section = WORDS[number % len(WORDS)]
        event = rig.parse({"type": "upsert", "loc": f"{BASE}{number}", "section": section})
        assert rig.inbox.accept([event], delivery=ident, digest="d").status == "accepted"
        if number % 2:
            rig.settle()
    rig.settle()

    assert store.xlen(rig.keys.dead) == 0
    assert set(rig.listed()) == {f"{BASE}{number}" for number in range(len(ids))}
    assert all(rig.inbox.accept([event], delivery=i, digest="d").status == "duplicate" for i in ids)
    check_keys(store)


@pytest.mark.parametrize("kind", [Sections, Draft])
@pytest.mark.parametrize(
    ("form", "remedy"),
    [
        (None, "sitemapd import"), ("1", "sitemapd import"), ("x", "sitemapd import"),
        ("2", "sitemapd migrate --site demo"), ("2>3", "sitemapd migrate --site demo"),
        (f"{CURRENT + 1}", "install the version that wrote it"),
        (f"{CURRENT}>{CURRENT + 1}", "install the version that wrote it"),
    ],
)  # fmt: skip
def test_a_state_of_another_layout_is_refused_with_what_to_do(
    store: redis.Redis, form: str | None, remedy: str, kind: type[Sections]
) -> None:
    store.hset(Keys("demo").sections, "pages", "1")
    if form is not None:
        store.hset(Keys("demo").counters, "form", form)

    with pytest.raises(LayoutError, match=remedy):
        kind(store, "demo", ["pages"]).numbers()


def test_a_state_that_a_worker_of_another_layout_has_just_begun_is_refused(
    store: redis.Redis,
) -> None:
    store.hset(Keys("demo").counters, "form", "2")

    with pytest.raises(LayoutError, match="layout 2"):
        PageRepository(store, "demo", {}).sections.numbers(["pages"])
