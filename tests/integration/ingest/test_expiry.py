"""News and videos leave by the clock, though no event ever comes."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
import redis
from lxml import etree

from shared.admin.site_status import Inspector
from shared.sitemap import w3c_dates
from tests.integration.clocked import Clock, Clocked
from tests.integration.conftest import RedisServer
from tests.integration.rig import BASE, NS, Rig, as_written
from worker.runtime import Runtime

NEWS = "{http://www.google.com/schemas/sitemap-news/0.9}"
VIDEO = "{http://www.google.com/schemas/sitemap-video/1.1}"
HOUR = 3_600_000
NOW = 1_795_256_400_000
"""2026-11-21T10:20:00Z in milliseconds."""


class Newsroom(Clocked):
    """A site with a news section, under a clock of its own."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(Clock(NOW), *arguments, **options)

    def at(self, ms: int) -> None:
        """It is `ms` now, and a sweep has passed."""
        self.clock.ms = ms
        self.pump().expire()
        self.settle()

    def news(self) -> dict[str, str]:
        """Title of each news entry by its page."""
        return {
            url.findtext(f"{NS}loc").removeprefix(BASE): url.findtext(f".//{NEWS}title")
            for name, content in self.shard_files().items()
            if name.startswith("news")
            for url in etree.fromstring(content)
        }


@pytest.fixture
def rig(store: redis.Redis, tmp_path: Path) -> Newsroom:
    return newsroom(store, tmp_path)


def newsroom(store: redis.Redis, tmp_path: Path, **section: Any) -> Newsroom:
    sections = {"posts": {}, "news": {"news": True, **section}}
    return Newsroom(store, tmp_path / "public", sections=sections, robots="create")


def article(name: str, published_ms: int = NOW, **members: Any) -> dict[str, Any]:
    return {
        "type": "upsert", "loc": name, "section": "posts",
        "news": {
            "publication": {"name": "The Example", "language": "en"},
            "publication_date": w3c_dates.from_epoch_s(published_ms // 1000),
            "title": f"About {name}",
        },
        **members,
    }  # fmt: skip


def test_an_article_is_listed_as_news_and_as_a_page(rig: Newsroom) -> None:
    """PROTOCOL W1, W11: in a file of its own, without changing the page's normal entry."""
    rig.do(article("a"), {"type": "upsert", "loc": "b", "section": "posts"})

    assert rig.news() == {"a": "About a"}
    assert set(rig.listed()) == {BASE + "a", BASE + "b"}
    assert b"news:" not in rig.shard_files()["posts-1"]
    assert rig.pages.lookup.count() == 2
    rig.check()


def test_the_inspector_says_where_an_article_is_and_where_as_news(rig: Newsroom) -> None:
    image = {"loc": f"{BASE}i.png"}
    rig.do(article("a", images=[image]))

    found = Inspector(rig.client, rig.name, rig.site).entry(f"{BASE}a")

    assert (found["file"], found["images"]) == ("posts-1.xml", (image,))
    assert found["as_news"]["file"] == "news-1.xml"
    assert found["as_news"]["news"]["title"] == "About a"
    assert found["as_news"]["published"] is True
    status = Inspector(rig.client, rig.name, rig.site).status()
    assert (status["urls"], status["published_urls"], status["files"]) == (1, 1, 2)


def test_an_article_leaves_the_news_at_its_hour_and_stays_a_page(rig: Newsroom) -> None:
    """PROTOCOL W4: 48 hours from its publication, though no event comes."""
    rig.do(article("old", NOW - 47 * HOUR), article("new"))
    page = as_written(rig.root / "posts-1.xml")

    rig.at(NOW + HOUR - 1)
    assert set(rig.news()) == {"old", "new"}

    rig.at(NOW + HOUR)
    assert set(rig.news()) == {"new"}
    assert set(rig.listed()) == {BASE + "old", BASE + "new"}
    assert as_written(rig.root / "posts-1.xml") == page
    rig.check()


def test_a_section_without_news_leaves_index_and_disk_and_comes_back_by_the_same_name(
    rig: Newsroom,
) -> None:
    """PROTOCOL W5, W10, C6: stable file names."""
    rig.do(article("a"))
    assert (rig.root / "news-1.xml").exists()

    rig.at(NOW + 48 * HOUR)
    assert not (rig.root / "news-1.xml").exists()
    assert b"news-1" not in rig.files()["sitemap.xml"].content
    rig.check()

    rig.do(article("b", NOW + 48 * HOUR))
    assert rig.news() == {"b": "About b"}
    assert (rig.root / "news-1.xml").exists()
    rig.check()


def test_an_empty_news_file_is_kept_where_that_is_wanted(
    store: redis.Redis, tmp_path: Path
) -> None:
    """PROTOCOL F12, W10: Google takes an empty news file."""
    rig = newsroom(store, tmp_path, keep_empty=True)
    rig.do(article("a"))

    rig.at(NOW + 48 * HOUR)

    assert rig.news() == {}
    assert len(etree.parse(rig.root / "news-1.xml").getroot()) == 0
    assert b"news-1.xml" in rig.files()["sitemap.xml"].content
    rig.check()


def test_a_news_file_lists_a_thousand_and_makes_room_as_they_leave(rig: Newsroom) -> None:
    """PROTOCOL W3, W5: at most 1,000 in a file, and files keep their names."""
    rig.do(*(article(f"{n}", NOW - (47 * HOUR if n < 10 else 0)) for n in range(1_001)))
    assert {name: content.count(b"<news:news>") for name, content in rig.shard_files().items()
            if name.startswith("news")} == {"news-1": 1_000, "news-2": 1}  # fmt: skip

    rig.at(NOW + HOUR)
    rig.do(*(article(f"late-{n}") for n in range(10)))

    assert rig.shard_files()["news-1"].count(b"<news:news>") == 1_000
    assert len(rig.news()) == 1_001
    rig.check()


def test_news_that_is_old_when_it_is_told_is_a_page_only(rig: Newsroom) -> None:
    rig.do(article("a", NOW - 48 * HOUR))

    assert rig.news() == {}
    assert set(rig.listed()) == {BASE + "a"}


@pytest.mark.parametrize("ahead", [1_000, 13 * HOUR, 15 * HOUR, 200 * HOUR])
def test_an_article_of_the_future_comes_at_its_moment_and_stays_48_hours(
    rig: Newsroom, ahead: int
) -> None:
    """PROTOCOL W4: a date with a zone is a moment, and no event comes at it."""
    rig.do(article("a", NOW + ahead), article("b"))
    assert set(rig.news()) == {"b"}
    assert set(rig.listed()) == {BASE + "a", BASE + "b"}
    found = Inspector(rig.client, rig.name, rig.site).entry(f"{BASE}a")
    assert found["as_news"] == {"from": w3c_dates.from_epoch_s((NOW + ahead) // 1000)}
    rig.check()

    rig.at(NOW + ahead - 1)
    assert "a" not in rig.news()
    rig.at(NOW + ahead)
    assert rig.news()["a"] == "About a"
    assert not rig.client.exists(rig.keys.coming)
    rig.check()

    rig.at(NOW + ahead + 48 * HOUR)
    assert rig.news() == {}
    assert not rig.client.exists(rig.keys.expiry)
    rig.check()


def test_a_date_without_a_time_is_news_as_soon_as_it_is_that_day_somewhere(rig: Newsroom) -> None:
    """PROTOCOL W8: 10:20 UTC is 00:20 of the next day at +14:00, and not yet of the day after."""
    for name, day in (("a", "2026-11-22"), ("b", "2026-11-23")):
        said = article(name)
        said["news"]["publication_date"] = day
        rig.do(said)
    assert set(rig.news()) == {"a"}

    rig.at(w3c_dates.epoch_ms("2026-11-22T10:00:00Z") - 1)
    assert set(rig.news()) == {"a"}
    rig.at(w3c_dates.epoch_ms("2026-11-22T10:00:00Z"))
    assert set(rig.news()) == {"a", "b"}


@pytest.mark.parametrize(
    ("later", "listed"),
    [
        ({"type": "delete", "loc": "a"}, None),
        ({"type": "upsert", "loc": "a", "noindex": True}, None),
        ({"type": "upsert", "loc": "a", "section": "posts"}, None),
        (article("a", NOW + 4 * HOUR), None),
        (article("a", NOW - HOUR), "About a"),
        (article("a", NOW + 2 * HOUR, lastmod="2026-11-20"), "About a"),
    ],
)
def test_what_is_said_later_undoes_what_was_to_come(
    rig: Newsroom, later: dict[str, Any], listed: str | None
) -> None:
    rig.do(article("a", NOW + 2 * HOUR))
    rig.do(later)

    rig.at(NOW + 2 * HOUR)

    assert rig.news().get("a") == listed
    rig.check()


def test_an_event_between_reading_and_listing_what_comes_wins(rig: Newsroom) -> None:
    rig.do(article("a", NOW + HOUR))
    rig.clock.ms = NOW + HOUR
    expiry = rig.pump().expiry
    due = expiry.decided([key.decode() for key in expiry.schedule.due(rig.clock.ms)])

    rig.do({"type": "upsert", "loc": "a", "section": "posts"})

    assert not rig.pages.apply(*due)
    rig.at(NOW + HOUR)
    assert rig.news() == {}


def test_the_hourly_refresh_finds_news_to_come_whose_hour_was_forgotten(
    rig: Newsroom, redis_server: RedisServer
) -> None:
    rig.do(article("a", NOW + HOUR))
    rig.client.delete(rig.keys.expiry)
    worker = plant(rig, redis_server)
    worker.upkeep.refresh()
    rig.clock.ms = NOW + HOUR

    worker.sweep()

    assert set(rig.news()) == {"a"}


def test_what_is_no_news_in_what_is_to_come_is_forgotten(rig: Newsroom) -> None:
    """RELIABILITY T19: the store was edited."""
    rig.do(article("a", NOW + HOUR), article("b", NOW + HOUR))
    stored = rig.client.hgetall(rig.keys.coming)
    name = f"news {BASE}a".encode()
    for damage in (b"", b"x", stored[name][:12], stored[f"news {BASE}b".encode()]):
        rig.client.hset(rig.keys.coming, name, damage)
        rig.client.zadd(rig.keys.expiry, {name: NOW + HOUR})
        rig.at(NOW + HOUR)

        assert set(rig.news()) == {"b"}
        assert not rig.client.hexists(rig.keys.coming, name)
    rig.check()


def test_an_article_that_is_told_again_without_news_is_a_page_only(rig: Newsroom) -> None:
    rig.do(article("a"), article("b"))

    rig.do({"type": "upsert", "loc": "a", "section": "posts"}, {"type": "delete", "loc": "b"})

    assert rig.news() == {}
    assert set(rig.listed()) == {BASE + "a"}
    rig.check()


def test_an_older_event_changes_nothing_of_the_news(rig: Newsroom) -> None:
    rig.do({"type": "upsert", "loc": "a", "section": "posts", "version": NOW})
    rig.do(article("a", version=NOW - 1))
    assert rig.news() == {}

    rig.do(article("b", version=NOW))
    rig.do({"type": "delete", "loc": "b", "version": NOW - 1})
    assert set(rig.news()) == {"b"}


def test_a_later_date_keeps_an_article_longer(rig: Newsroom) -> None:
    rig.do(article("a", NOW - 47 * HOUR))
    rig.do(article("a", NOW))

    rig.at(NOW + 2 * HOUR)

    assert set(rig.news()) == {"a"}
    assert rig.client.zcard(rig.keys.expiry) == 1


def test_news_goes_to_the_section_of_its_language(store: redis.Redis, tmp_path: Path) -> None:
    sections = {"news-de": {"news": True, "languages": ["de"]}, "news": {"news": True}}
    rig = Newsroom(store, tmp_path / "public", sections=sections)
    german = article("b", section=None)
    german["news"]["publication"]["language"] = "de"

    rig.do(article("a", section=None), german)

    files = rig.shard_files()
    assert b"/a</loc>" in files["news-1"]
    assert b"/b</loc>" in files["news-de-1"]
    assert files["news-1"].count(b"<url>") == files["news-de-1"].count(b"<url>") == 1


def test_a_hundred_articles_that_leave_at_once_are_no_alarm(rig: Newsroom) -> None:
    """RELIABILITY T32 is about what somebody deletes, not about the hour."""
    rig.do(*(article(f"{n}") for n in range(100)))

    rig.at(NOW + 48 * HOUR)

    assert rig.news() == {}
    assert not rig.state.shrink.held()


def test_any_order_of_events_ends_in_the_same_news(store: redis.Redis, tmp_path: Path) -> None:
    """DESIGN 8.3, for what leaves by the clock: events and the time decide, not the order."""
    dice, events = random.Random(5), list[dict[str, Any]]()
    for version in range(150):
        item = {"loc": f"p/{dice.randrange(12)}", "version": NOW - 1000 + version}
        if dice.random() < 0.2:
            events.append({"type": "delete", **item})
        elif dice.random() < 0.3:
            events.append({"type": "upsert", **item})
        else:
            events.append(article("", NOW - dice.randrange(60) * HOUR, **item))
    found = []
    for seed in range(3):
        random.Random(seed).shuffle(events)
        sections: dict[str, Any] = {"posts": {}, "news": {"news": True}}
        rig = Newsroom(store, tmp_path / f"p{seed}", name=f"s{seed}", sections=sections)
        for at in range(0, len(events), 17):
            rig.do(*events[at : at + 17])
        rig.at(NOW + HOUR)
        rig.check()
        found.append((rig.news(), rig.listed()))

    assert found[0] == found[1] == found[2]
    assert len(found[0][0]) > 2


def video(title: str, expires_ms: int | None) -> dict[str, Any]:
    told = {
        "thumbnail_loc": f"{BASE}t.png", "title": title, "description": "d",
        "content_loc": f"{BASE}{title}.mp4",
    }  # fmt: skip
    if expires_ms is not None:
        told["expiration_date"] = w3c_dates.from_epoch_s(expires_ms // 1000)
    return told


def titles(rig: Rig) -> list[str]:
    return [
        element.text
        for content in rig.shard_files().values()
        for element in etree.fromstring(content).iter(f"{VIDEO}title")
    ]


def test_a_video_leaves_when_it_expires_and_its_page_stays(rig: Newsroom) -> None:
    """PROTOCOL V6: the next one at its own time, the one without a time never."""
    shown = [video("one", NOW + HOUR), video("two", NOW + 2 * HOUR), video("three", None)]
    rig.do({"type": "upsert", "loc": "a", "videos": shown})
    assert titles(rig) == ["one", "two", "three"]

    rig.at(NOW + HOUR)
    assert titles(rig) == ["two", "three"]

    rig.at(NOW + 3 * HOUR)
    assert titles(rig) == ["three"]
    assert not rig.client.exists(rig.keys.expiry)
    rig.check()


def test_a_video_that_is_told_again_after_its_time_changes_nothing(rig: Newsroom) -> None:
    told = {"type": "upsert", "loc": "a", "videos": [video("one", NOW + HOUR)]}
    rig.do(told)
    rig.at(NOW + HOUR)
    page = as_written(rig.root / "pages-1.xml")

    rig.do(told)

    assert titles(rig) == []
    assert as_written(rig.root / "pages-1.xml") == page


def test_what_expires_while_its_page_changes_takes_nothing_with_it(rig: Newsroom) -> None:
    """The due time is read, then the event comes, then what was read is applied."""
    rig.do({"type": "upsert", "loc": "a", "videos": [video("one", NOW + HOUR)]})
    rig.clock.ms = NOW + HOUR
    expiry = rig.pump().expiry
    due = expiry.decided([key.decode() for key in expiry.schedule.due(rig.clock.ms)])

    rig.do({"type": "upsert", "loc": "a", "videos": [video("new", NOW + 5 * HOUR)]})

    assert not rig.pages.apply(*due)
    assert titles(rig) == ["new"]
    rig.at(NOW + 5 * HOUR)
    assert titles(rig) == []


def test_the_sweep_of_a_worker_takes_out_what_is_over(
    rig: Newsroom, redis_server: RedisServer
) -> None:
    """PROTOCOL W4: nobody sends a message, and no schedule runs."""
    rig.do(article("a"), article("b", NOW - 47 * HOUR))
    rig.clock.ms = NOW + HOUR

    plant(rig, redis_server).sweep()

    assert set(rig.news()) == {"a"}


def test_the_hourly_refresh_finds_news_whose_hour_was_forgotten(
    rig: Newsroom, redis_server: RedisServer
) -> None:
    rig.do(article("a"), article("b", NOW - 47 * HOUR))
    rig.client.delete(rig.keys.expiry)
    rig.clock.ms = NOW + HOUR
    worker = plant(rig, redis_server)
    worker.sweep()
    assert set(rig.news()) == {"a", "b"}

    worker.upkeep.refresh()
    worker.sweep()

    assert set(rig.news()) == {"a"}
    assert rig.client.zcard(rig.keys.expiry) == 1


def plant(rig: Newsroom, server: RedisServer) -> Runtime:
    settings = rig.settings.model_copy(update={"redis_url": server.url})
    return Runtime(settings, "w9", rig.clock)
