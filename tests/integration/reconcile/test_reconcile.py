"""What a site lists against its source of truth: found, repaired, and left alone where in doubt."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from shared.errors import ReconcileError, SourceError
from shared.events.resync_scope import Scope
from tests.integration.conftest import Unchanged
from tests.integration.reconcile.reconciled import differences, reconcile, record
from tests.integration.rig import BASE, Rig
from worker.sources import Item, RecordRefusal, read
from worker.sources.records import EXTENDED, STATED

DAY = "2026-01-01"
SECTIONS: dict[str, Any] = {"posts": {"split": "month"}, "news": {"news": True}}


@pytest.fixture
def rig(store: redis.Redis, tmp_path: Path) -> Rig:
    return Rig(store, tmp_path, sections=SECTIONS, shard_urls=4, block_urls=2)


def upsert(path: str, **members: Any) -> dict[str, Any]:
    return {"type": "upsert", "loc": path, "lastmod": DAY, **members}


def truth(rig: Rig) -> set[str]:
    return {loc.removeprefix(BASE) for loc in rig.listed()}


def fill(rig: Rig, count: int = 10, prefix: str = "p/") -> list[Item]:
    """Pages listed over several files, and the source that says so."""
    paths = [f"{prefix}{n}" for n in range(count)]
    rig.do(*map(upsert, paths))
    return [record(path, DAY) for path in paths]


def test_a_site_that_is_as_its_source_differs_in_nothing(rig: Rig) -> None:
    source = fill(rig)

    assert differences(rig, source) == set()


def test_missing_extra_and_stale_pages_are_told_apart(rig: Rig) -> None:
    source = fill(rig)
    source[0] = record("p/0", "2026-02-02")
    del source[3]
    source.append(record("new", DAY))

    found = differences(rig, source)

    assert {("stale", "p/0"), ("extra", "p/3"), ("missing", "new")} == found


def test_patches_that_wait_to_be_published_are_listed_already(rig: Rig) -> None:
    source = fill(rig, 6)
    rig.send({"type": "delete", "loc": "p/1"}, upsert("late"))
    rig.pump().apply_all()

    assert differences(rig, source) == {("missing", "p/1"), ("extra", "late")}


def test_nothing_is_written_by_comparing(rig: Rig, unchanged: Unchanged) -> None:
    source = [*fill(rig), record("new", DAY, extra={"section": "posts"})]

    with unchanged():
        assert differences(rig, source) == {("missing", "new")}


def test_a_reconcile_leaves_no_difference(rig: Rig) -> None:
    source = fill(rig)
    source[0] = record("p/0", "2026-02-02")
    del source[3]
    source.append(record("new", DAY))

    done = reconcile(rig, source)

    assert (done.added, done.changed, done.deleted) == (1, 1, 1)
    assert done.complete
    assert truth(rig) == {item.loc.removeprefix(BASE) for item in source}
    assert differences(rig, source) == set()
    rig.check()


def test_a_second_reconcile_sends_nothing(rig: Rig) -> None:
    source = [*fill(rig), record("new")]
    reconcile(rig, source)
    before = rig.files()

    done = reconcile(rig, source)

    assert (done.added, done.changed, done.deleted) == (0, 0, 0)
    assert rig.files() == before


def test_all_that_is_said_of_a_page_that_is_named_twice_counts_in_any_order(rig: Rig) -> None:
    """As in an import; else a verify after it would never be quiet."""
    one, two = ({"loc": BASE + f"{name}.jpg"} for name in ("a", "b"))
    rig.do(upsert("p/0", lastmod="2026-03-03", images=[one, two]))
    filler = fill(rig, 600, "f/")  # in another batch
    first, last = record("p/0", "2026-03-03", images=[two]), record("p/0", DAY, images=[one, two])

    for around in ([], filler):
        left_out = set() if around else {("extra", f"f/{n}") for n in range(600)}
        assert differences(rig, [first, *around, last]) == left_out
        assert differences(rig, [last, *around, first]) == left_out
        assert ("stale", "p/0") in differences(rig, [last, *around, last])


def test_an_event_after_the_run_began_wins(rig: Rig) -> None:
    source = fill(rig)

    def read() -> Iterator[Item]:
        yield from source[:3]
        rig.do({"type": "delete", "loc": "p/0"}, upsert("p/5", lastmod="2026-11-11"), upsert("new"))
        yield from source[3:]

    reconcile(rig, read())

    assert "p/0" not in truth(rig)
    assert "new" in truth(rig)
    assert rig.listed()[BASE + "p/5"] == "2026-11-11"


def test_versions_of_the_source_do_not_keep_later_events_out(rig: Rig) -> None:
    fill(rig, 1)
    ahead = str(rig.resyncs.begin_ms() + 3_600_000)

    reconcile(rig, [record("p/0", "2026-06-06", extra={"version": ahead})])
    rig.do({"type": "delete", "loc": "p/0"})

    assert truth(rig) == set()


def test_a_source_that_cannot_be_read_to_its_end_changes_nothing(rig: Rig) -> None:
    source = fill(rig)
    before = rig.files()

    def read() -> Iterator[Item]:
        yield record("new")
        yield source[0]
        raise SourceError("cut off")

    with pytest.raises(SourceError):
        reconcile(rig, read())
    rig.settle()

    assert rig.files() == before


@pytest.mark.parametrize(
    "refusal",
    [
        RecordRefusal("two.xml", "N4", "not found", BASE + "two.xml", whole=True),
        RecordRefusal("one.xml#3", "F13", "no loc"),
        RecordRefusal("one.xml", "F9", "broken gzip"),
        RecordRefusal("one.xml#3", "L3", "characters were lost", BASE + "p/\ufffd"),
    ],
)
def test_what_may_be_missing_in_the_source_is_not_deleted(rig: Rig, refusal: RecordRefusal) -> None:
    source = [*fill(rig)[:6], refusal, record("new")]

    done = reconcile(rig, source)

    assert (done.added, done.deleted, done.extra) == (1, 0, 4)
    assert refusal.detail in done.incomplete
    assert not done.complete
    assert truth(rig) == {f"p/{n}" for n in range(10)} | {"new"}


@pytest.mark.parametrize(
    "stray", ["<Url><loc>{}p/6</loc></Url>", "<loc>{}p/6</loc>", "<sitemap/>", "p/6"]
)
def test_an_entry_that_is_none_leaves_the_source_incomplete(
    rig: Rig, tmp_path_factory: pytest.TempPathFactory, stray: str
) -> None:
    """PROTOCOL F13: its page may have been meant, so none is deleted."""
    fill(rig)
    known = "".join(f"<url><loc>{BASE}p/{n}</loc></url>" for n in range(6))
    path = tmp_path_factory.mktemp("source") / "s.xml"
    path.write_text(
        '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">'
        f"{known}{stray.format(BASE)}</urlset>"
    )

    done = reconcile(rig, read(str(path)))

    assert (done.deleted, done.extra) == (0, 3 if "loc" in stray else 4)
    assert "outside of <url>" in done.incomplete
    assert truth(rig) == {f"p/{n}" for n in range(10)}


def test_a_page_that_its_source_says_may_not_be_listed_is_deleted(rig: Rig) -> None:
    source = fill(rig)
    source[0] = RecordRefusal("pages#1", "L8", "the page is marked noindex", BASE + "p/0")

    reconcile(rig, source)

    assert "p/0" not in truth(rig)


def test_a_page_that_its_source_states_wrongly_stays(rig: Rig) -> None:
    """The section is not configured: refused, but it is there."""
    source = fill(rig)
    source[0] = record("p/0", DAY, extra={"section": "shop"})

    done = reconcile(rig, source)

    assert done.complete
    assert "p/0" in truth(rig)


@pytest.mark.parametrize("left", [0, 4])
def test_a_source_with_far_too_few_pages_is_refused(rig: Rig, left: int) -> None:
    """RELIABILITY T32."""
    source = fill(rig)
    before = rig.files()

    with pytest.raises(ReconcileError, match=r"10 are listed.*--yes"):
        reconcile(rig, [*source[:left]])

    assert rig.files() == before


def test_who_insists_gets_even_an_empty_site(rig: Rig) -> None:
    fill(rig)

    reconcile(rig, [], insist=True)

    assert truth(rig) == set()


def test_half_the_pages_may_go(rig: Rig) -> None:
    source = fill(rig)

    assert reconcile(rig, source[:5]).deleted == 5


def test_a_prefix_limits_what_is_compared_and_repaired(rig: Rig) -> None:
    blog, shop = fill(rig, 4, "blog/"), fill(rig, 4, "shop/")
    scope = Scope(prefix=BASE + "blog/")
    source = [record("blog/0", "2026-02-02"), *blog[1:3], *shop[1:], record("shop/9")]

    assert differences(rig, source, scope) == {("stale", "blog/0"), ("extra", "blog/3")}
    reconcile(rig, source, scope)

    assert truth(rig) == {f"blog/{n}" for n in range(3)} | {f"shop/{n}" for n in range(4)}


def test_a_subtree_that_moved_away_is_deleted_without_insisting(rig: Rig) -> None:
    """What a resync of a renamed parent asks for: all below the old address is gone."""
    fill(rig, 4, "old/")
    rest = fill(rig, 8, "p/")
    moved = [record(f"new/{n}", DAY) for n in range(4)]

    done = reconcile(rig, [*rest, *moved], Scope(prefix=BASE + "old/"))

    assert (done.deleted, done.added) == (4, 0)


def test_a_section_is_meant_with_all_its_months(rig: Rig) -> None:
    pages = fill(rig, 3)
    rig.do(*(upsert(f"post/{n}", section="posts", published=f"2026-0{n}-01") for n in (1, 2, 3)))
    scope = Scope(section="posts")
    source = [record("post/1", DAY), record("post/2", "2026-03-03"), *pages[1:]]

    assert differences(rig, source, scope) == {("stale", "post/2"), ("extra", "post/3")}


def test_a_source_without_a_place_for_something_does_not_deny_it(rig: Rig) -> None:
    images = [{"loc": BASE + "a.jpg"}]
    rig.do(upsert("p/0", images=images), upsert("p/1", images=images))
    silent = [record("p/0", DAY, silent=EXTENDED), record("p/1", silent=STATED)]

    assert differences(rig, silent) == set()
    assert differences(rig, [record("p/0", DAY), silent[1]]) == {("stale", "p/0")}


def test_what_a_source_has_no_place_for_survives_a_repair(rig: Rig) -> None:
    rig.do(upsert("p/0", images=[{"loc": BASE + "a.jpg"}]))

    reconcile(rig, [record("p/0", "2026-04-04", silent=EXTENDED)])

    (content,) = rig.shard_files().values()
    assert b"<lastmod>2026-04-04</lastmod>" in content
    assert b"a.jpg" in content
    rig.check()


def test_news_is_no_page_of_its_own(rig: Rig) -> None:
    news = {
        "publication": {"name": "The Example", "language": "en"},
        "publication_date": rig.now(),
        "title": "Now",
    }
    rig.do(upsert("n/0", news=news), upsert("n/1", news=news))
    silent = [record("n/0", DAY, silent=EXTENDED)]

    assert differences(rig, silent) == {("extra", "n/1")}
    done = reconcile(rig, silent)

    assert (done.listed, done.deleted) == (2, 1)
    assert b"Now" in rig.shard_files()["news-1"]
    assert truth(rig) == {"n/0"}


@pytest.mark.parametrize("silent", [frozenset(), EXTENDED], ids=["all is stated", "little is"])
def test_a_repair_keeps_the_time_at_which_a_page_leaves_and_its_title(
    store: redis.Redis, tmp_path: Path, silent: frozenset[str]
) -> None:
    outputs = {"llms": True, "html": True}
    rig = Rig(store, tmp_path, outputs=outputs)
    said = {"title": "Offer", "description": "Of the week.", "expires": "2999-01-01T00:00:00Z"}
    rig.do(upsert("p/0", **said), upsert("p/1"))

    done = reconcile(rig, [record(f"p/{n}", "2026-04-04", silent=silent) for n in range(2)])

    assert done.changed == 2
    assert rig.listed()[f"{BASE}p/0"] == "2026-04-04"
    assert f"[Offer]({BASE}p/0): Of the week." in (rig.root / "llms.txt").read_text()
    assert ">Offer<" in (rig.root / "sitemap-pages-1-1.html").read_text()
    assert rig.client.zscore(rig.keys.expiry, f"at {BASE}p/0")
    rig.check()


def test_a_page_keeps_its_translations_and_is_said_to_differ(rig: Rig) -> None:
    rig.do(
        upsert("en", group="home", lang="en"), upsert("de", group="home", lang="de"), upsert("x")
    )
    same = [record(path, DAY, silent=EXTENDED) for path in ("en", "de", "x")]
    assert differences(rig, same) == set()
    before = rig.files()

    done = reconcile(rig, [record("en", "2026-04-04", silent=EXTENDED), *same[1:]])

    assert (done.kept, done.changed) == (1, 0)
    assert not done.complete
    assert rig.files() == before


def test_a_page_that_moved_is_stale_and_its_old_address_no_extra(rig: Rig) -> None:
    rig.do(upsert("old", id="7"), upsert("p/0"))
    source = [record("new", DAY, extra={"id": "7"}), record("p/0", DAY)]

    assert differences(rig, source) == {("stale", "new")}
    reconcile(rig, source)

    assert truth(rig) == {"new", "p/0"}


def test_one_reconcile_of_a_site_at_a_time(rig: Rig) -> None:
    with rig.resyncs.lock("somebody"), pytest.raises(ReconcileError, match="somebody"):
        reconcile(rig, [])
    reconcile(rig, [])


def test_a_lock_that_was_lost_stops_the_run_before_anything_is_sent(rig: Rig) -> None:
    source = fill(rig)
    before = rig.files()

    def read() -> Iterator[Item]:
        yield from source[:7]
        rig.client.set(rig.keys.reconcile, "another:1")

    with pytest.raises(ReconcileError, match="another"):
        reconcile(rig, read())

    assert rig.files() == before
    assert rig.client.get(rig.keys.reconcile) == b"another:1"
    rig.client.delete(rig.keys.reconcile)
