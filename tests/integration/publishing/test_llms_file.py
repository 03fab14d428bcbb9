"""The llms.txt of a site, on a real store and real files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import redis

from tests.integration.rig import BASE, Rig, restarted
from worker.publishing.removal import remove_files

ON: dict[str, Any] = {"llms": True, "llms_entries": 10, "llms_summary": "A site of tests."}
OPTIONS: dict[str, Any] = {
    "title": "Tests", "shard_urls": 4, "shrink_least": 1_000, "sections": {"docs": {}},
}  # fmt: skip


def page(path: object, title: str = "", kind: str = "upsert", **members: Any) -> dict[str, Any]:
    given = {"title": title} if title else {}
    return {"type": kind, "loc": f"{BASE}{path}"} | given | members


@pytest.fixture
def rig(store: redis.Redis, tmp_path: Path) -> Rig:
    return Rig(store, tmp_path / "public", outputs=ON, **OPTIONS)


def again(rig: Rig, **options: Any) -> Rig:
    """The same site after a restart with other settings."""
    return restarted(rig, **(OPTIONS | options))


def lines(rig: Rig) -> list[str]:
    """The lines of llms.txt between its head and our mark; the site is right besides."""
    rig.check()
    text = (rig.root / "llms.txt").read_text()
    assert text.startswith("# Tests\n\n> A site of tests.\n\n## ")
    return [line for line in text.split("\n")[4:] if line and not line.startswith("<!--")]


def test_titled_pages_are_listed_by_section_the_newest_first(rig: Rig) -> None:
    rig.do(
        page("a", "First", lastmod="2026-01-01T00:00:00Z"),
        page("b", "Second", description="What it says.", lastmod="2026-01-02T00:00:00Z"),
        page("c", "Manual", section="docs"), page("untitled"),
    )  # fmt: skip

    assert lines(rig) == [
        "## docs", f"- [Manual]({BASE}c)",
        "## pages", f"- [Second]({BASE}b): What it says.", f"- [First]({BASE}a)",
    ]  # fmt: skip


def test_deleted_pages_leave_and_the_file_with_the_last_one(rig: Rig) -> None:
    rig.do(page("a", "First"), page("b", "Second"))
    rig.do(page("a", kind="delete"))

    assert lines(rig) == ["## pages", f"- [Second]({BASE}b)"]
    rig.do(page("b", kind="delete"))
    assert not (rig.root / "llms.txt").exists()
    rig.check()


def test_a_title_alone_changes_the_file_and_no_sitemap(rig: Rig) -> None:
    rig.do(page("a", "First", lastmod="2026-01-01"))
    before = rig.files()
    rig.do(page("a", "Better", description="Now described", lastmod="2026-01-01"))

    assert rig.files() == before
    assert lines(rig) == ["## pages", f"- [Better]({BASE}a): Now described"]
    rig.do(page("a", lastmod="2026-01-02"))
    assert not (rig.root / "llms.txt").exists(), "an event states a page whole"


def test_pages_of_before_are_listed_once_they_are_sent_again(
    store: redis.Redis, tmp_path: Path
) -> None:
    plain = Rig(store, tmp_path / "public", **OPTIONS)
    plain.do(page("a", "First", lastmod="2026-01-01T00:00:00Z"))
    rig = again(plain, outputs=ON)
    assert not (rig.root / "llms.txt").exists()
    before = rig.files()

    rig.do(page("a", "First", lastmod="2026-01-01T00:00:00Z"))

    assert lines(rig) == ["## pages", f"- [First]({BASE}a)"]
    assert rig.files() == before


def test_only_the_newest_are_listed(rig: Rig) -> None:
    rig.do(*(page(n, f"T{n}", lastmod=f"2026-01-{n:02}T00:00:00Z") for n in range(1, 15)))

    assert lines(rig)[1:] == [f"- [T{n}]({BASE}{n})" for n in range(14, 4, -1)]


def test_a_page_that_moves_is_listed_where_it_is(rig: Rig) -> None:
    rig.do(page("a", "First"))
    rig.do(page("a", "First", section="docs"))

    assert lines(rig) == ["## docs", f"- [First]({BASE}a)"]


def test_a_hostile_title_stays_a_text(rig: Rig) -> None:
    rig.do(page("a", "](https://evil.example)\n# <b>", description="\u2028- [x](y)"))

    assert lines(rig) == [
        "## pages",
        f"- [&#93;(https://\u2060evil.example) \\# &lt;b&gt;]({BASE}a): \\- &#91;x&#93;(y)",
    ]


def test_it_is_independent_of_the_feeds(rig: Rig) -> None:
    both = again(rig, outputs=ON, feed=True, feed_entries=20)
    both.do(page("a", "First"), page("b", "Second"))
    assert (rig.root / "atom.xml").exists()

    alone = again(rig, outputs=ON)
    assert not (rig.root / "atom.xml").exists()
    assert len(lines(alone)) == 3, "what feeds kept is still there"
    neither = again(rig)
    assert not (rig.root / "llms.txt").exists()
    assert not rig.client.exists(rig.keys.feed, rig.keys.feed_items)
    neither.check()


def test_a_file_of_others_stays(rig: Rig) -> None:
    rig.root.mkdir(exist_ok=True)
    (rig.root / "llms.txt").write_text("# theirs\n")
    rig.do(page("a", "First"))

    assert (rig.root / "llms.txt").read_text() == "# theirs\n"
    rig.check()
    remove_files(rig.client, rig.name, rig.site)
    assert (rig.root / "llms.txt").read_text() == "# theirs\n"


def test_a_removed_site_takes_its_file_along(rig: Rig) -> None:
    rig.do(page("a", "First"))
    remove_files(rig.client, rig.name, rig.site)

    assert not (rig.root / "llms.txt").exists()
