"""A file that is rolled back has the bytes it had, and the state is what its events made it."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
import redis

from shared.admin import rollback_plan
from shared.admin.files import FileActions
from shared.admin.rollback import Rollback
from shared.admin.rollback_plan import RollbackPlan
from shared.errors import InvalidError
from shared.sitemap.shards import Shard
from tests.integration.rig import BASE, Rig

PAGES = Shard("pages", 1)


def upsert(loc: str, **members: Any) -> dict[str, Any]:
    return {"type": "upsert", "loc": loc, **members}


def delete(**members: Any) -> dict[str, Any]:
    return {"type": "delete", **members}


def files(rig: Rig) -> FileActions:
    return FileActions(rig.client, rig.name, rig.site)


def last(rig: Rig, shard: Shard = PAGES) -> str:
    """The place of the newest revision."""
    return files(rig).revision(shard).at


def roll(rig: Rig, to: str, shard: Shard = PAGES) -> RollbackPlan:
    rolling = Rollback(rig.client, rig.name, rig.site)
    plan = rolling.plan(shard, to)
    rolling.execute(shard, to, plan)
    rig.settle()
    return plan


def content(rig: Rig, name: str = "pages-1") -> bytes:
    return rig.shard_files()[name]


@pytest.mark.parametrize("seed", [0, 1, 2, 100, 101, 105])
def test_any_history_of_a_file_is_taken_back_to_any_of_its_revisions(
    store: redis.Redis, tmp_path: Path, seed: int
) -> None:
    """Several blocks, ids, pages that leave and come back: the bytes are those of that time."""
    dice = random.Random(seed)
    rig = Rig(store, tmp_path, block_urls=5, hints=True)
    before: list[tuple[str, bytes]] = []
    rig.do(*(upsert(f"p/{n}", id=n) for n in range(12)))
    for _ in range(8):
        was, newest = content(rig), last(rig)
        batch = []
        for n in dice.sample(range(20), 4):
            if dice.random() < 0.4:
                named = {"id": n} if dice.random() < 0.5 else {"loc": f"p/{n}"}
                batch.append(delete(**named))
            else:
                batch.append(upsert(f"p/{n}", id=n, lastmod=f"2026-01-{dice.randrange(1, 29):02}"))
        rig.do(*batch)
        if last(rig) != newest:
            before.append((last(rig), was))

    for to, was in reversed(before):
        plan = roll(rig, to)
        assert content(rig) == was, plan
        rig.check()
    rig.do(*(delete(id=n) for n in range(20)))
    assert rig.listed() == {}, "their ids still name them"


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_pages_that_moved_between_urls_and_files_leave_no_wrong_line(
    store: redis.Redis, tmp_path: Path, seed: int
) -> None:
    """Several shards. The lines are those of that time, or the plan says which are not."""
    dice = random.Random(seed)
    rig = Rig(store, tmp_path, block_urls=3, shard_urls=9, sections={"posts": {}})
    rig.do(*(upsert(f"p/{n}", id=n) for n in range(8)))
    before: list[tuple[str, bytes]] = []
    for _ in range(8):
        was, newest = content(rig), last(rig)
        batch = []
        for n in dice.sample(range(14), 3):
            page, section = dice.choice((n, dice.randrange(14))), dice.choice(("pages", "posts"))
            day = f"2026-01-{dice.randrange(1, 29):02}"
            if dice.random() < 0.3:
                batch.append(delete(id=n))
            else:
                batch.append(upsert(f"p/{page}", id=n, section=section, lastmod=day))
        rig.do(*batch, upsert("stays"))
        if last(rig) != newest:
            before.append((last(rig), was))

    for to, was in reversed(before):
        plan = roll(rig, to)
        rig.check()
        if plan.left or plan.noted:
            break
        assert sorted(content(rig).splitlines()) == sorted(was.splitlines()), plan


def test_a_rollback_can_itself_be_taken_back(store: redis.Redis, tmp_path: Path) -> None:
    rig = Rig(store, tmp_path)
    rig.do(upsert("a"), upsert("b"))
    rig.do(upsert("a", lastmod="2026-01-01"), delete(loc="b"), upsert("c"))
    now, to = content(rig), last(rig)
    roll(rig, to)
    assert set(rig.listed()) == {f"{BASE}a", f"{BASE}b"}

    roll(rig, last(rig))

    assert content(rig) == now


def test_extensions_news_entries_and_titles_come_back_with_their_page(
    store: redis.Redis, tmp_path: Path
) -> None:
    now = Rig(store, tmp_path / "x").now()
    rig = Rig(store, tmp_path, sections={"news": {"news": True}}, feed=True)
    article = {
        "publication": {"name": "The Example", "language": "en"},
        "publication_date": now, "title": "Tomorrow",
    }  # fmt: skip
    image, video = {"loc": "https://cdn.example.net/1.jpg"}, {
        "thumbnail_loc": "https://cdn.example.net/t.jpg", "title": "T & T", "description": "D",
        "content_loc": "https://cdn.example.net/v.mp4",
    }  # fmt: skip
    links = [{"hreflang": code, "href": f"{BASE}{code}"} for code in ("en", "de")]
    rig.do(
        upsert("a", news=article, images=[image], videos=[video], lastmod="2026-01-01"),
        upsert("en", alternates=links, title="English"), upsert("de", alternates=links),
    )  # fmt: skip
    was, news = content(rig), rig.shard_files()["news-1"]
    rig.do(upsert("a", news=article), delete(loc="en"), upsert("de"))

    roll(rig, last(rig))

    assert content(rig) == was
    assert rig.shard_files()["news-1"].count(b"<news:title>Tomorrow</news:title>") == 1
    assert news.count(b"<url>") == 1
    rig.check()
    with pytest.raises(InvalidError, match="news files change with time"):
        roll(rig, last(rig, Shard("news", 1)), Shard("news", 1))


def test_pages_of_a_translation_group_are_left_and_counted(
    store: redis.Redis, tmp_path: Path
) -> None:
    rig = Rig(store, tmp_path)
    rig.do(upsert("en", group="g", lang="en"), upsert("de", group="g", lang="de"), upsert("x"))
    rig.do(
        upsert("en", group="g", lang="en", lastmod="2026-01-01"), delete(loc="de"), delete(loc="x")
    )

    plan = roll(rig, last(rig))

    assert plan.left == {rollback_plan.GROUPED: [f"{BASE}de", f"{BASE}en"]}
    assert rig.listed() == {f"{BASE}en": "2026-01-01", f"{BASE}x": None}
    rig.check()


def test_a_page_whose_id_is_elsewhere_by_now_is_left_there(
    store: redis.Redis, tmp_path: Path
) -> None:
    rig = Rig(store, tmp_path, sections={"posts": {}})
    rig.do(upsert("a", id=1), upsert("b", id=2), upsert("c"))
    rig.do(upsert("new/a", id=1, section="posts"), upsert("b", section="posts"), delete(loc="c"))

    plan = roll(rig, files(rig).history(PAGES)[0].at)

    assert plan.left == {rollback_plan.ELSEWHERE: [f"{BASE}a", f"{BASE}b"]}
    assert set(rig.listed()) == {f"{BASE}new/a", f"{BASE}b", f"{BASE}c"}
    rig.check()


def test_a_move_within_the_file_is_taken_back_with_the_id(
    store: redis.Redis, tmp_path: Path
) -> None:
    rig = Rig(store, tmp_path)
    rig.do(upsert("a", id=1), upsert("x"))
    was = content(rig)
    rig.do(upsert("b", id=1))

    roll(rig, last(rig))

    assert content(rig) == was
    rig.do(delete(id=1))
    assert set(rig.listed()) == {f"{BASE}x"}


def test_an_id_that_is_not_kept_is_said(store: redis.Redis, tmp_path: Path) -> None:
    rig = Rig(store, tmp_path)
    rig.do(upsert("a", id=1), upsert("x"))
    rig.do(delete(id=1))
    store.xtrim(rig.keys.recent, maxlen=0)

    plan = roll(rig, last(rig))

    assert plan.noted == {rollback_plan.NO_ID: [f"{BASE}a"]}
    assert f"{BASE}a" in rig.listed()


def test_pages_sent_with_a_version_of_tomorrow_are_taken_back_too(
    store: redis.Redis, tmp_path: Path
) -> None:
    rig = Rig(store, tmp_path)
    tomorrow = rig.resyncs.begin_ms() + 20 * 3_600_000
    rig.do(upsert("a", version=tomorrow), upsert("x"))
    was = content(rig)
    rig.do(upsert("a", version=tomorrow + 1, lastmod="2026-01-01"))

    roll(rig, last(rig))

    assert content(rig) == was


def test_a_file_that_was_emptied_says_that_its_pages_come_back_elsewhere(
    store: redis.Redis, tmp_path: Path
) -> None:
    rig = Rig(store, tmp_path, shard_urls=2)
    rig.do(upsert("a"), upsert("b"), upsert("c"))
    rig.do(delete(loc="a"), delete(loc="b"))

    plan = roll(rig, files(rig).history(PAGES)[0].at)

    assert plan.noted == {rollback_plan.NO_PLACE: [f"{BASE}a", f"{BASE}b"]}
    assert len(rig.listed()) == 3
    rig.check()


def test_a_page_that_replaced_the_only_one_of_its_file_gives_it_back(
    store: redis.Redis, tmp_path: Path
) -> None:
    rig = Rig(store, tmp_path)
    rig.do(upsert("a"))
    was = content(rig)
    rig.do(delete(loc="a"), upsert("b"))

    roll(rig, last(rig))

    assert content(rig) == was


def test_what_cannot_be_taken_back_is_refused_with_what_to_do(
    store: redis.Redis, tmp_path: Path
) -> None:
    rig = Rig(store, tmp_path)
    rig.do(upsert("a"), upsert("b"))
    rig.do(delete(loc="a"))
    to = last(rig)
    with pytest.raises(InvalidError, match=f"kept are .* to {to}"):
        roll(rig, "1-0")
    with pytest.raises(InvalidError, match="sitemapd files list"):
        files(rig).shard("nothing-1.xml")
    (fields,) = [fields for at, fields in store.xrange(rig.keys.revisions, to, to)]
    store.delete(rig.keys.revisions)
    store.xadd(rig.keys.revisions, fields | {b"lines": b""}, id=to)
    with pytest.raises(InvalidError, match="too many to keep: restore a backup"):
        roll(rig, to)
    store.delete(rig.keys.revisions)
    store.xadd(rig.keys.revisions, fields)
    rig.client.hset(rig.keys.paused, "intake", "1 me")
    with pytest.raises(InvalidError, match="sitemapd queue resume intake"):
        roll(rig, last(rig))
