"""Old pages are in the archive of their section, though no event comes."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
import redis

from shared.errors import ShardError
from shared.sitemap import w3c_dates
from shared.sitemap.shards import Shard
from tests.integration.clocked import Clock, Clocked
from tests.integration.rig import BASE
from worker.publishing.upkeep.section_archiving import SectionArchiver

DAY = 86_400_000
NOW = int(time.time()) * 1000
SECTIONS: dict[str, Any] = {
    "posts": {}, "archive": {"archives": "posts", "after_days": 30},
}  # fmt: skip


class Archived(Clocked):
    """A site under a clock of its own, and its archiver."""

    def __init__(self, store: redis.Redis, root: Path, **options: Any) -> None:
        super().__init__(Clock(NOW), store, root, **({"sections": SECTIONS} | options))
        self.archiver = SectionArchiver(self.pages, self.state, self.site.routing)

    def after(self, days: float) -> int:
        """So many days after the beginning a worker has tidied up; the number of moved pages."""
        self.clock.ms = NOW + round(days * DAY)
        moved = self.archiver.run(self.clock.ms)
        self.settle()
        return moved

    def sections(self) -> dict[str, str]:
        """Section of each page by its path."""
        return {
            loc.decode().removeprefix(BASE): name.rpartition("-")[0]
            for name, content in self.shard_files().items()
            for loc in [part.partition(b"<")[0] for part in content.split(b"<loc>")[1:]]
        }


@pytest.fixture
def rig(store: redis.Redis, tmp_path: Path) -> Archived:
    return Archived(store, tmp_path / "public")


def post(path: str, age: float | None = None, **members: Any) -> dict[str, Any]:
    dated = (
        {} if age is None else {"lastmod": w3c_dates.from_epoch_s(int(NOW / 1000 - age * 86400))}
    )
    return {"type": "upsert", "loc": path, "section": "posts", **dated, **members}


def test_a_page_goes_to_the_archive_when_it_is_old_and_comes_back_when_it_changes(
    rig: Archived,
) -> None:
    rig.do(post("old", 40), post("ageing", 29), post("young", 1), post("undated"))
    assert rig.sections() == {
        "old": "archive", "ageing": "posts", "young": "posts", "undated": "posts",
    }  # fmt: skip
    before = rig.listed()

    assert rig.after(0.9) == 0
    assert rig.after(1) == 1

    assert rig.sections()["ageing"] == "archive"
    assert rig.listed() == before
    rig.check()
    rig.do(post("ageing", -1.5))
    assert rig.sections()["ageing"] == "posts"
    rig.do(post("old", 39) | {"section": None})
    assert rig.sections()["old"] == "archive"
    rig.check()


def test_an_event_of_a_page_that_was_moved_by_time_changes_it_where_it_is(rig: Archived) -> None:
    rig.do(post("a", 20, version=NOW - 20 * DAY))
    rig.after(15)

    rig.do(post("a", 19, version=NOW - 19 * DAY))
    rig.do(post("a", 30, version=NOW - 30 * DAY))

    assert rig.sections() == {"a": "archive"}
    assert rig.reasons()[-2:] == ["changed", "older than what is known of this URL"]
    rig.check()
    rig.do({"type": "delete", "loc": "a"})
    assert rig.listed() == {}


def test_an_event_that_names_the_archive_puts_a_page_there_whatever_its_age(rig: Archived) -> None:
    rig.do(post("a", 1, section="archive"))
    assert rig.sections() == {"a": "archive"}

    rig.after(50)
    assert rig.sections() == {"a": "archive"}


def test_pages_can_be_archived_by_what_their_events_say(store: redis.Redis, tmp_path: Path) -> None:
    fields = {"changefreq": ["never"], "priority": ["0.10"]}
    sections = {"old": {"archives": "pages", "fields": fields}}
    rig = Archived(store, tmp_path / "public", sections=sections)

    rig.do(
        post("a", 1, changefreq="never") | {"section": None},
        post("b", 99) | {"section": None},
        post("c", priority=0.1) | {"section": "pages"},
    )
    assert rig.sections() == {"a": "old", "b": "pages", "c": "old"}
    rig.do(post("a", changefreq="daily") | {"section": None})
    assert rig.sections() == {"a": "pages", "b": "pages", "c": "old"}
    assert rig.after(99) == 0
    rig.check()


def test_of_many_files_and_months_all_old_pages_are_moved(
    store: redis.Redis, tmp_path: Path
) -> None:
    sections = {"posts": {"split": "month"}, "archive": {"archives": "posts", "after_days": 100}}
    rig = Archived(store, tmp_path / "public", sections=sections, shard_urls=7)
    rig.do(*(post(f"p/{n}", n) for n in range(99)))
    assert "archive" not in set(rig.sections().values())

    assert rig.after(51) == 50

    assert sum(of == "archive" for of in rig.sections().values()) == 50
    rig.check()
    assert rig.after(200) == 49
    rig.check()


def test_a_shard_is_read_again_only_when_something_in_it_may_be_due(rig: Archived) -> None:
    rig.do(post("a", 20), post("b", 10))
    rig.after(1)

    def reads() -> int:
        stats: Any = rig.client.info("commandstats")
        return int(stats.get("cmdstat_hgetall", {}).get("calls", 0))

    rig.after(2)
    before = reads()
    rig.after(3)
    quiet = reads() - before
    rig.do(post("c", 24))
    before = reads()
    assert rig.archiver.run(rig.clock.ms) == 0
    assert reads() - before > quiet
    assert rig.after(6) == 1
    assert rig.after(10) == 1


def test_a_damaged_shard_holds_up_no_other(store: redis.Redis, tmp_path: Path) -> None:
    rig = Archived(store, tmp_path / "public", shard_urls=2)
    rig.do(*(post(f"p/{n}", 1) for n in range(6)))
    rig.client.hset(rig.keys.blocks(Shard("posts", 2)), "0", b"junk")

    with pytest.raises(ShardError, match="posts/2 is damaged"):
        rig.archiver.run(NOW + 99 * DAY)
    rig.settle()

    assert sum(of == "archive" for of in rig.sections().values()) == 4
