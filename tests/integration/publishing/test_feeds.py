"""The feeds of a site's newest changes, on a real store and real files (PROTOCOL F11)."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import redis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shared.config.sites.site import Site
from shared.domain.page_record import digest_of
from shared.sitemap.shards import Shard
from shared.store.publishing.publish_work import PublishBatch, PublishedShard
from tests import feeds as reader
from tests.integration.logs import silence
from tests.integration.rig import BASE, Rig, as_written, check_keys
from worker.checks.file_monitor import FileMonitor
from worker.publishing.outputs.feeds import NAMES
from worker.publishing.outputs.feeds import contents as rendered

DAY = 86_400_000
START = 1_700_000_000_000
"""2023-11-14T22:13:20Z in milliseconds."""


def upsert(loc: str, at: int = 0, **members: Any) -> dict[str, Any]:
    """The page `loc` as it became `at` days after START; another content each time."""
    given = {"version": START + at * DAY, "priority": f"0.{at % 10}"} if at else {}
    return {"type": "upsert", "loc": loc, **given, **members}


def delete(loc: str, at: int = 0, **members: Any) -> dict[str, Any]:
    given = {"version": START + at * DAY} if at else {}
    return {"type": "delete", "loc": loc, **given, **members}


@pytest.fixture
def rig(store: redis.Redis, tmp_path: Path) -> Rig:
    return Rig(store, tmp_path / "public", feed=True, feed_entries=10, hints=True, shard_urls=4)


def again(rig: Rig, **options: Any) -> Rig:
    """The same site after a restart with other settings."""
    given: dict[str, Any] = {"feed": True, "feed_entries": 10, "hints": True, "shard_urls": 4}
    return Rig(rig.client, rig.root, name=rig.name, **(given | options))


def contents(rig: Rig) -> dict[str, bytes]:
    return {name: (rig.root / name).read_bytes() for name in NAMES if (rig.root / name).exists()}


def fed(rig: Rig) -> list[reader.Read]:
    """What both feeds list; they are valid, and the site is right besides."""
    rig.check()
    return read(rig)


def read(rig: Rig) -> list[reader.Read]:
    """What both feeds list, whatever is stored."""
    found = contents(rig)
    if not found:
        return []
    atom, rss = reader.atom(found["atom.xml"]), reader.rss(found["rss.xml"])
    assert atom == rss
    return atom


def order(rig: Rig) -> list[str]:
    return _paths(fed(rig))


def _paths(found: list[reader.Read]) -> list[str]:
    return [each.loc.removeprefix(BASE) for each in found]


def check(rig: Rig) -> Mapping[str, str]:
    """What two rounds of a checker hold to be wrong; it has the publisher put that right."""
    by = FileMonitor(rig.state, rig.name, rig.site)
    by.round()
    return by.round().wrong


def test_a_page_of_which_the_news_alone_changes_is_news_in_the_feeds(
    store: redis.Redis, tmp_path: Path
) -> None:
    rig = Rig(store, tmp_path / "public", feed=True, sections={"news": {"news": True}})
    article = {
        "publication": {"name": "The Example", "language": "en"}, "publication_date": rig.now(),
        "title": "Before",
    }  # fmt: skip
    rig.do(upsert("a", news=article), upsert("b"))

    rig.do(upsert("a", news=article | {"title": "After"}))

    assert fed(rig)[0][:2] == (f"{BASE}a", "After")


def test_without_the_setting_nothing_is_written_and_nothing_kept(
    store: redis.Redis, tmp_path: Path
) -> None:
    rig = Rig(store, tmp_path / "public")

    rig.do(upsert("a", 1, title="A page"))

    assert not contents(rig)
    assert not store.exists(rig.keys.feed, rig.keys.feed_items)


def test_the_page_that_changed_last_comes_first(rig: Rig) -> None:
    rig.do(upsert("a", 1, title="First"), upsert("b", 2), upsert("c", 3, title="Third"))
    rig.do(upsert("a", 4, title="First, again"))

    assert [(each.loc, each.title) for each in fed(rig)] == [
        (BASE + "a", "First, again"), (BASE + "c", "Third"), (BASE + "b", BASE + "b"),
    ]  # fmt: skip


def test_a_page_is_dated_by_its_lastmod_or_else_by_its_event(rig: Rig) -> None:
    """PROTOCOL M2: a date alone does not say when on that day."""
    rig.do(
        upsert("timed", 3, lastmod="2023-11-20T01:02:03+01:00"),
        upsert("dated", 2, lastmod="2023-11-16"),
    )

    assert [(each.loc, each.updated) for each in fed(rig)] == [
        (BASE + "timed", "2023-11-20T00:02:03Z"), (BASE + "dated", "2023-11-16T22:13:20Z"),
    ]  # fmt: skip


def test_nothing_is_dated_after_its_arrival(rig: Rig) -> None:
    """PROTOCOL M5."""
    (ident,) = rig.send(upsert("a", version=rig.resyncs.begin_ms() + 20 * 3_600_000))
    rig.settle()

    (page,) = fed(rig)
    arrived = reader.epoch_s(page.updated)
    assert arrived == int(ident.partition("-")[0]) // 1000


def test_only_so_many_are_listed_and_a_bounded_number_is_kept(rig: Rig) -> None:
    for start in range(1, 41, 10):
        rig.do(*(upsert(f"p/{n}", n) for n in range(start, start + 10)))

    assert order(rig) == [f"p/{n}" for n in range(40, 30, -1)]
    assert rig.client.zcard(rig.keys.feed) == rig.client.hlen(rig.keys.feed_items) == 20
    assert {*rig.client.zrange(rig.keys.feed, 0, -1)} == {*rig.client.hkeys(rig.keys.feed_items)}


def test_a_deleted_page_leaves_and_the_next_comes_up(rig: Rig) -> None:
    rig.do(*(upsert(f"p/{n}", n) for n in range(1, 13)))

    rig.do(delete("p/12"), upsert("p/11", noindex=True))

    assert order(rig) == [f"p/{n}" for n in range(10, 0, -1)]


def test_an_empty_site_has_no_feeds(rig: Rig) -> None:
    rig.do(upsert("a", 1))
    assert len(contents(rig)) == 2

    rig.do(delete("a"))

    assert not contents(rig)
    assert not check(rig)
    rig.check()


def test_a_no_op_touches_neither_file(rig: Rig) -> None:
    """PROTOCOL O6."""
    rig.do(upsert("a", 1, title="One"), upsert("b", 2, lastmod="2023-11-15"))
    before = [as_written(rig.root / name) for name in NAMES]

    rig.do(upsert("a", 1, title="One"), upsert("b", lastmod="2023-11-15", priority="0.2"))
    rig.do(upsert("a", 1, title="One", version=START + 9 * DAY), delete("never"))

    assert [as_written(rig.root / name) for name in NAMES] == before
    assert rig.reasons()[-2:] == ["same content", "deleted, and it was not listed"]


def test_a_new_title_alone_changes_the_feeds_and_no_sitemap(rig: Rig) -> None:
    rig.do(upsert("a", 1, title="One"), upsert("b", 2))
    before = rig.files()

    rig.do(upsert("a", 1, title="Two", version=START + 3 * DAY))

    assert [each.title for each in fed(rig)] == ["Two", BASE + "b"]
    assert rig.files() == before
    assert rig.reasons()[-1] == "changed in the feeds"


def test_a_new_title_with_an_equal_stamp_is_published_too(rig: Rig) -> None:
    """Whoever sends long after a version has one tie for all (shared.domain.page_record.stamp)."""
    rig.do(upsert("a", 1, title="One"))
    record = rig.client.hgetall(rig.keys.loc(digest_of(BASE + "a")))

    rig.do(upsert("a", 1, title="Two"))

    assert [each.title for each in fed(rig)] == ["Two"]
    assert rig.client.hgetall(rig.keys.loc(digest_of(BASE + "a"))) == record


def test_a_page_that_moves_is_listed_where_it_is(rig: Rig) -> None:
    rig.do(upsert("old", 1, id="7", title="A page"), upsert("b", 2))
    rig.do(upsert("new", 3, id="7", title="A page"))

    assert order(rig) == ["new", "b"]


def test_a_page_that_another_version_or_the_clock_changes_is_no_news(rig: Rig) -> None:
    """Its alternates follow its group (PROTOCOL H3)."""
    rig.do(upsert("en", 1, group="g", lang="en"), upsert("b", 2))
    rig.do(upsert("de", 3, group="g", lang="de"))

    assert order(rig) == ["de", "b", "en"]
    rig.do(upsert("en", 1, group="g", lang="en", version=START + 9 * DAY))
    assert order(rig) == ["de", "b", "en"]
    assert rig.reasons()[-1] == "same content"


def test_an_article_is_entered_once_under_its_title(store: redis.Redis, tmp_path: Path) -> None:
    rig = Rig(store, tmp_path / "public", feed=True, sections={"news": {"news": True}})
    (ident,) = rig.send(upsert("b"))
    now = reader.rfc3339(int(ident.partition("-")[0]) // 1000)
    article = {
        "publication": {"name": "The Example", "language": "en"},
        "publication_date": now, "title": "What happened",
    }  # fmt: skip

    rig.do(upsert("a", news=article))

    assert sorted((each.loc, each.title) for each in fed(rig)) == [
        (BASE + "a", "What happened"), (BASE + "b", BASE + "b"),
    ]  # fmt: skip
    assert len(rig.shard_files()) == 2


def test_a_hub_and_a_title_are_named_in_both(rig: Rig) -> None:
    """WebSub 4: a subscriber finds the hub and the topic in the feed."""
    rig.do(upsert("a", 1))
    assert [reader.hub(each) for each in contents(rig).values()] == [None, None]
    assert b"<title>www.example.com</title>" in contents(rig)["atom.xml"]

    named = again(rig, hub="https://hub.example/?a=1&b=2", title="Ours & yours")
    named.do(upsert("a", 2))

    found = contents(named)
    assert [reader.hub(each) for each in found.values()] == ["https://hub.example/?a=1&b=2"] * 2
    assert all(b"<title>Ours &amp; yours</title>" in each for each in found.values())


@pytest.mark.parametrize("hub", ["ftp://hub.example/", "hub.example", "javascript:alert(1)"])
def test_a_hub_is_an_address_on_the_web(hub: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="hub"):
        Site(base_url=BASE, web_root=tmp_path, tokens=("0123456789abcdef",), hub=hub)


def unlink(path: Path) -> None:
    path.unlink()


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:90])


def replace(path: Path) -> None:
    path.write_text("<html/>\n")


@pytest.mark.parametrize("hurt", [unlink, cut, replace])
@pytest.mark.parametrize("name", NAMES)
def test_a_damaged_feed_is_put_right_without_an_event(
    rig: Rig, name: str, hurt: Callable[[Path], None]
) -> None:
    """RELIABILITY F23."""
    rig.do(upsert("a", 1), upsert("b", 2))
    before, files = contents(rig), rig.files()

    hurt(rig.root / name)

    what = "missing" if hurt is unlink else "differs"
    assert list(rig.audit().verify()) == [(name, what)]
    assert check(rig) == {name: what}
    rig.settle()
    assert contents(rig) == before
    assert rig.files() == files
    assert not check(rig)
    rig.check()


def test_a_rebuild_writes_lost_feeds(rig: Rig) -> None:
    rig.do(upsert("a", 1), upsert("b", 2))
    before = contents(rig)
    for name in NAMES:
        (rig.root / name).unlink()

    with silence():
        assert sorted(rig.audit().rebuild()) == sorted(NAMES)

    assert contents(rig) == before


def test_what_waits_is_no_difference(rig: Rig) -> None:
    rig.do(upsert("a", 1))
    rig.send(upsert("b", 2))
    rig.pump().apply_all()

    assert not list(rig.audit().verify())
    assert not check(rig)
    rig.settle()
    assert order(rig) == ["b", "a"]


def test_switched_off_they_go_and_nothing_of_before_comes_back(rig: Rig) -> None:
    rig.do(upsert("a", 1), upsert("b", 2))

    off = again(rig, feed=False)
    assert check(off) == dict.fromkeys(NAMES, "unwanted")
    assert list(off.audit().verify()) == [(name, "unexpected") for name in NAMES]
    off.settle()
    assert not contents(off)
    assert not list(off.audit().verify())
    off.do(delete("a"))

    on = again(rig)
    on.do(upsert("c", 3))
    assert order(on) == ["c"]


def test_a_feed_of_somebody_else_stays_where_ours_are_off(
    store: redis.Redis, tmp_path: Path
) -> None:
    rig = Rig(store, tmp_path)
    for name in NAMES:
        (tmp_path / name).write_text("<rss version='2.0'/>\n")

    rig.do(upsert("a", 1))
    with silence():
        rig.audit().rebuild()

    assert set(contents(rig).values()) == {b"<rss version='2.0'/>\n"}
    assert not check(rig)
    rig.check()


def test_what_the_store_damaged_is_left_out_and_holds_up_nothing(rig: Rig) -> None:
    """RELIABILITY T14."""
    rig.do(upsert("a", 1), upsert("b", 2), upsert("c", 3))
    for loc, stored in {BASE + "a": b"x", "\xfc<": bytes(13), BASE + "d\x01": bytes(13)}.items():
        rig.client.hset(rig.keys.feed_items, loc, stored)

    rig.do(upsert("b", 4))
    assert _paths(read(rig)) == ["b", "c"]

    rig.do(upsert("a", 5))
    assert _paths(read(rig)) == ["a", "b", "c"]

    rig.audit().rebuild()
    assert order(rig) == ["a", "b", "c"]


def test_the_sitemap_does_not_wait_for_a_feed_that_cannot_be_written(rig: Rig) -> None:
    """RELIABILITY T18: a link is not followed, and not replaced either."""
    rig.root.mkdir()
    (rig.root / "rss.xml").mkdir()
    (rig.root / "atom.xml").symlink_to("elsewhere")

    rig.do(upsert("a", 1))

    assert rig.listed()
    assert (rig.root / "atom.xml").is_symlink()
    assert not check(rig)


def test_a_title_that_comes_while_its_page_is_published_is_published_next(rig: Rig) -> None:
    rig.do(upsert("a", 1, title="One"))
    shard = Shard("pages", 1)
    rig.send(upsert("a", 1, title="Two", version=START + 2 * DAY))
    rig.pump().apply_all()
    begun = rig.begin("somebody")
    assert isinstance(begun, PublishBatch)
    (taken,), lines = begun.taken, begun.lines

    rig.send(upsert("a", 1, title="Three", version=START + 3 * DAY))
    rig.pump().apply_all()
    assert rig.lease.commit(
        "somebody", [PublishedShard(taken, {}, taken.file, 0, lines[0][0])], {}
    ).publishes

    assert rig.state.dirty() == [shard]
    rig.settle()
    assert [each.title for each in fed(rig)] == ["Three"]


def test_a_pass_that_changes_no_feed_writes_none(rig: Rig) -> None:
    rig.do(*(upsert(f"p/{n}", n) for n in range(1, 31)))
    before = [as_written(rig.root / name) for name in NAMES], rig.files()

    rig.do(delete("p/1"))

    assert [as_written(rig.root / name) for name in NAMES] == before[0]
    assert rig.files() != before[1]


PAGES = ("a", "b", "c")
EVENTS = st.lists(
    st.tuples(
        st.sampled_from(PAGES), st.sampled_from(["upsert", "delete", "timed"]),
        st.sampled_from(["", "One", "Two"]),
    ),
    min_size=2, max_size=8,
)  # fmt: skip


@settings(
    max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(EVENTS, st.data())
def test_any_order_of_the_same_versions_ends_in_the_same_feeds(
    store: redis.Redis, tmp_path: Path, drawn: list[tuple[str, str, str]], data: st.DataObject
) -> None:
    """DESIGN 8, promise 3. Each event has a version; what it says it says alone, or with a time."""
    events = []
    for at, (loc, kind, title) in enumerate(drawn, 1):
        said = {"title": title} if title else {}
        if kind == "delete":
            events.append(delete(loc, at))
        elif kind == "timed":
            lastmod = reader.rfc3339(START // 1000 + at % 3)
            events.append(upsert(loc, version=START + at * DAY, lastmod=lastmod, **said))
        else:
            events.append(upsert(loc, at, **said))
    mixed = data.draw(st.permutations(events + events[:1]))
    cut = data.draw(st.integers(0, len(mixed)))

    found = []
    for parts in ([events], [mixed[:cut], mixed[cut:]], [[event] for event in mixed]):
        name = f"s{uuid.uuid4().hex[:8]}"
        rig = Rig(store, tmp_path / name, name=name, feed=True, hints=True)
        for part in filter(None, parts):
            rig.send(*part)
            rig.pump().apply_all()
        found.append(rendered(rig.state, rig.site))

    assert found[0] == found[1] == found[2]
    check_keys(store)
