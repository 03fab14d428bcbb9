"""Translation groups: one language changes, and every version lists it, in as many files."""

from __future__ import annotations

import random
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import redis
from lxml import etree

from shared.domain.translation_groups import MAX_MEMBERS
from shared.sitemap.shards import Shard
from shared.store.operations.dead_letters import DeadLetters
from tests.integration.rig import BASE, NS, Rig, as_written
from worker.ingest.event_processor import MAX_TRIES

LINK = "{http://www.w3.org/1999/xhtml}link"
CODES = [
    "ar",
    "bg",
    "cs",
    "da",
    "de",
    "el",
    "en",
    "es",
    "et",
    "fi",
    "fr",
    "ga",
    "he",
    "hi",
    "hr",
    "hu",
    "id",
    "is",
    "it",
    "ja",
    "ko",
    "lt",
    "lv",
    "mk",
    "mt",
    "nb",
    "nl",
    "pl",
    "pt",
    "ro",
    "ru",
    "sk",
    "sl",
    "sr",
    "sv",
    "th",
    "tr",
    "uk",
    "vi",
    "zh",
]  # forty lines otherwise


@pytest.fixture
def rig(store: redis.Redis, tmp_path: Path) -> Rig:
    """Each page in a file of its own."""
    return Rig(store, tmp_path / "public", shard_urls=1)


def version(code: str, group: str | None = "about", **members: Any) -> dict[str, Any]:
    lang = ["en", "x-default"] if code == "en" else code
    told = {"group": group, "lang": lang} if group else {}
    return {"type": "upsert", "loc": f"{code}/about", **told, **members}


def linked(rig: Rig) -> dict[str, dict[str, str]]:
    """loc below the site -> code -> href, of every page in the files."""
    return {
        url.findtext(f"{NS}loc").removeprefix(BASE): {
            link.get("hreflang"): link.get("href").removeprefix(BASE) for link in url.iter(LINK)
        }
        for content in rig.shard_files().values()
        for url in etree.fromstring(content)
    }


def everybody_lists(rig: Rig, codes: list[str]) -> None:
    """H2, H3: the identical set everywhere, itself included."""
    expected = {code: f"{code}/about" for code in codes}
    if "en" in codes:
        expected["x-default"] = "en/about"
    assert linked(rig) == {f"{code}/about": expected for code in codes}
    rig.check()


def files(rig: Rig) -> Mapping[str, object]:
    return {path.name: as_written(path) for path in rig.root.glob("*-*.xml")}


def changed(rig: Rig, before: Mapping[str, object]) -> int:
    after = files(rig)
    return sum(before.get(name) != after.get(name) for name in before.keys() | after.keys())


def test_forty_languages_in_forty_files_list_each_other(rig: Rig) -> None:
    """PROTOCOL H2, H3, H5, H8: whatever the order in which they come."""
    order = [*CODES]
    random.Random(40).shuffle(order)
    for code in order:
        rig.do(version(code))

    assert len(CODES) == len(files(rig)) == 40
    everybody_lists(rig, CODES)


def test_a_language_that_leaves_leaves_every_file(rig: Rig) -> None:
    """PROTOCOL H3."""
    rig.do(*map(version, CODES))
    before = files(rig)

    rig.do({"type": "delete", "loc": "ja/about"})

    everybody_lists(rig, [code for code in CODES if code != "ja"])
    assert changed(rig, before) == 40


def test_a_new_text_in_one_language_touches_its_own_file_alone(rig: Rig) -> None:
    rig.do(*map(version, CODES))
    before = files(rig)

    rig.do(version("fr", lastmod="2026-01-02"))

    assert changed(rig, before) == 1
    everybody_lists(rig, CODES)


def test_a_page_that_moves_is_linked_at_its_new_address(rig: Rig) -> None:
    rig.do(*(version(code, id=code) for code in ("de", "en", "fr")))

    rig.do(version("de", id="de", loc="de/ueber-uns"))

    assert set(linked(rig)) == {"de/ueber-uns", "en/about", "fr/about"}
    assert {links["de"] for links in linked(rig).values()} == {"de/ueber-uns"}
    rig.check()


def test_a_page_that_changes_its_group_leaves_the_one_and_enters_the_other(rig: Rig) -> None:
    rig.do(*map(version, ("de", "en", "fr")))
    rig.do(version("it", "contact"), version("es", "contact"))

    rig.do(version("fr", "contact"))

    assert set(linked(rig)["de/about"]) == {"de", "en", "x-default"}
    for code in ("it", "es", "fr"):
        assert set(linked(rig)[f"{code}/about"]) == {"es", "fr", "it"}
    rig.check()


def test_the_last_two_that_part_list_nothing(rig: Rig) -> None:
    rig.do(version("de"), version("fr"))
    assert set(linked(rig)["de/about"]) == {"de", "fr"}

    rig.do(version("fr", group=None))

    assert linked(rig) == {"de/about": {}, "fr/about": {}}
    rig.check()


def test_a_language_claimed_twice_is_the_later_ones_until_that_goes(rig: Rig) -> None:
    """PROTOCOL H5: one URL for each code."""
    rig.do(version("de"), version("fr"))

    rig.do(version("de", loc="de/new"))
    assert linked(rig)["fr/about"]["de"] == "de/new"
    assert linked(rig)["de/about"] == {}

    rig.do({"type": "delete", "loc": "de/new"})
    assert linked(rig)["fr/about"]["de"] == "de/about"
    rig.check()


def test_any_order_of_events_ends_in_the_same_sets(store: redis.Redis, tmp_path: Path) -> None:
    """DESIGN 8.3, for groups."""
    now, dice = 1_795_000_000_000, random.Random(7)
    events: list[dict[str, Any]] = []
    for n in range(200):
        code, stamp = dice.choice(CODES[:8]), {"version": now + n}
        loc = {"loc": f"{code}/{dice.randrange(3)}"}
        if dice.random() < 0.25:
            events.append({"type": "delete", **loc, **stamp})
        else:
            group = dice.choice(["a", "b", None])
            events.append(version(code, group, **loc, **stamp))
    found = []
    for seed in range(3):
        random.Random(seed).shuffle(events)
        rig = Rig(store, tmp_path / f"p{seed}", name=f"s{seed}", shard_urls=4)
        for at in range(0, len(events), 23):
            rig.do(*events[at : at + 23])
        rig.check()
        found.append(linked(rig))

    assert found[0] == found[1] == found[2]
    assert any(links for links in found[0].values())


def test_a_language_that_comes_while_the_last_other_goes_lists_no_page_that_is_gone(
    rig: Rig,
) -> None:
    """The set is that of one page before and after; it was another in the middle of the batch."""
    rig.do(version("fr"))

    rig.do(version("de"), {"type": "delete", "loc": "fr/about"})

    assert linked(rig) == {"de/about": {}}


def test_a_language_saved_while_another_is_gone_for_a_moment_lists_it(rig: Rig) -> None:
    """The set is the same before and after; it was another in the middle of the batch."""
    rig.do(version("en"), version("fr"))

    rig.do(
        {"type": "delete", "loc": "fr/about"}, version("en", lastmod="2026-01-02"), version("fr")
    )

    everybody_lists(rig, ["en", "fr"])


def test_workers_that_settle_versions_of_a_page_at_once_agree(rig: Rig) -> None:
    for code in CODES:
        rig.send(version(code))
    workers = [threading.Thread(target=rig.settle, kwargs={"consumer": f"w{n}"}) for n in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    rig.settle()

    everybody_lists(rig, CODES)


def test_a_group_without_members_leaves_nothing_behind(rig: Rig) -> None:
    rig.do(*map(version, CODES[:3]))
    rig.do(*({"type": "delete", "loc": f"{code}/about"} for code in CODES[:3]))

    assert not list(rig.client.scan_iter("*cluster*"))


def test_a_group_that_is_full_takes_no_more_and_holds_up_nobody(
    store: redis.Redis, tmp_path: Path
) -> None:
    rig = Rig(store, tmp_path / "public")
    rig.do(*(version("de", loc=f"de/{n}") for n in range(MAX_MEMBERS)))
    rig.send(version("fr"), {"type": "upsert", "loc": "other"})

    rig.settle()

    assert f"{BASE}other" in rig.listed()
    assert f"{BASE}fr/about" not in rig.listed()
    ((_, dead),) = store.xrange(rig.keys.dead)
    assert b"1000 pages at most" in dead[b"error"]


def test_a_member_whose_line_was_lost_holds_up_no_other_event(rig: Rig) -> None:
    """An event that needs the line fails like any other, and says what to do."""
    rig.do(*map(version, ("de", "en")))
    rig.client.delete(rig.keys.blocks(Shard("pages", 1)))

    rig.send(version("fr"), {"type": "upsert", "loc": "alone"})
    for _ in range(MAX_TRIES):
        rig.pump().run()

    assert "alone" in {loc.removeprefix(BASE) for loc in rig.listed()}
    (letter,) = DeadLetters(rig.client, rig.name).letters()
    assert "its entry is not stored: run sitemapd rebuild" in letter.error
