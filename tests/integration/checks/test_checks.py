"""Each check of what is listed finds what it is for, and nothing on a site that is right."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import redis

from shared.errors import ReconcileError
from shared.events.resync_scope import Scope
from shared.sitemap import blocks, shards
from shared.sitemap.shards import Shard
from shared.store.operations.checks import ERROR, OK, WARNING, CheckStore, FindingSample
from shared.store.pages.page_scan import PageScan
from tests.integration.checks.examined import examine, found, wrong
from tests.integration.logs import silence
from tests.integration.reconcile.reconciled import reconcile, record
from tests.integration.rig import BASE, Rig
from worker.checks.duplicates import DuplicatePages
from worker.checks.examination import Examination
from worker.ingest.inbox_consumer import InboxConsumer
from worker.sources import RecordRefusal

NEWS = {"news": {"news": True}}
RIGHT = f"""
# BEGIN sitemapd
Sitemap: {BASE}sitemap.xml
# END sitemapd
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "public"
    root.mkdir()
    return root


@pytest.fixture
def rig(store: redis.Redis, root: Path) -> Rig:
    """A site of ten pages in four files."""
    rig = Rig(store, root, robots="edit", shard_urls=3, sections={"posts": {}})
    (root / "robots.txt").write_text("User-agent: *\nDisallow: /admin/\n")
    rig.do(*({"type": "upsert", "loc": f"p/{n}"} for n in range(10)))
    return rig


def article(hours_ago: float) -> dict[str, Any]:
    published = datetime.now(UTC) - timedelta(hours=hours_ago)
    return {
        "publication": {"name": "The Example", "language": "en"}, "title": "An article",
        "publication_date": published.strftime("%Y-%m-%dT%H:%M:%SZ"),
    }  # fmt: skip


@pytest.mark.parametrize("form", shards.FORMS)
def test_nothing_is_found_on_a_sound_site_of_random_pages(
    store: redis.Redis, root: Path, form: str
) -> None:
    rand = random.Random(form)
    (root / "robots.txt").write_text(
        "User-agent: BadBot\nDisallow: /\n\nUser-agent: *\nDisallow:\n"
    )
    sections: dict[str, Any] = {"posts": {"shard_urls": 7}} | (
        NEWS if form not in shards.TEXT_FORMS else {}
    )
    rig = Rig(store, root, form=form, shard_urls=20, robots="edit", block_urls=5, sections=sections)
    pieces = ["a", "%C3%BC", "ü", "&amp", "?q=1&r=<2>", "'x'", "%2F", "%25", "~", "(1)", "日本"]
    for _ in range(5):
        rig.do(*(_event(rand, pieces, news=form not in shards.TEXT_FORMS) for _ in range(30)))

    report = examine(rig)

    assert wrong(report) == {}
    assert report.pages == sum(file.urls for file in rig.state.files(rig.state.sections()).values())
    assert report.pages > 50


def _event(rand: random.Random, pieces: list[str], *, news: bool) -> dict[str, Any]:
    loc = f"{rand.randrange(100)}/{rand.choice(pieces)}{rand.choice(pieces)}"
    if rand.random() < 0.2:
        return {"type": "delete", "loc": loc}
    event: dict[str, Any] = {"type": "upsert", "loc": loc}
    if rand.random() < 0.5:
        ago = timedelta(seconds=rand.randrange(10**8))
        form = rand.choice(["%Y-%m-%d", "%Y-%m-%dT%H:%M:%SZ"])
        event["lastmod"] = (datetime.now(UTC) - ago).strftime(form)
    if rand.random() < 0.3:
        event["section"] = "posts"
    if news and rand.random() < 0.3:
        event["news"] = article(rand.random() * 40)
    if rand.random() < 0.2:
        event["images"] = [{"loc": "https://cdn.example.com/a.jpg?x=1&y=2"}]
    return event


def test_pages_of_another_base_url_are_found(rig: Rig) -> None:
    """PROTOCOL L5, L6: the configuration was changed, the pages stayed."""
    for base in ("http://www.example.com/", "https://example.com/", BASE + "shop/"):
        moved = Rig(rig.client, rig.root, base_url=base, shard_urls=3, robots="off")

        finding = wrong(examine(moved))["wrong-host"]

        assert finding.severity == ERROR
        assert finding.found == 10
        assert finding.samples[0] in {
            FindingSample(f"{BASE}p/{n}", "pages-1.xml") for n in range(3)
        }


def test_only_pages_outside_base_url_are_found(rig: Rig) -> None:
    rig.do({"type": "upsert", "loc": "shop/a"})
    shop = Rig(rig.client, rig.root, base_url=BASE + "shop/", shard_urls=3, robots="off")

    finding = wrong(examine(shop))["wrong-host"]

    assert finding.found == 10
    assert BASE + "shop/a" not in {each.where for each in finding.samples}


def test_no_finding_names_more_than_20_pages(rig: Rig) -> None:
    rig.do(*({"type": "upsert", "loc": f"q/{n}"} for n in range(50)))
    (rig.root / "robots.txt").write_text("User-agent: *\nDisallow: /\n" + RIGHT)

    finding = wrong(examine(rig))["robots-blocked"]

    assert (finding.found, len(finding.samples)) == (60 + 20 + 1, 20), "pages, files, index"


def test_a_lastmod_in_the_future_is_found(rig: Rig) -> None:
    """PROTOCOL M5: let in while the clock of Redis was two days ahead."""
    ahead = datetime.now(UTC) + timedelta(days=2)
    for loc, lastmod in (("soon", ahead - timedelta(hours=1)), ("now", ahead - timedelta(days=2))):
        text = lastmod.strftime("%Y-%m-%dT%H:%M:%SZ")
        (ident,) = rig.send({"type": "upsert", "loc": loc, "lastmod": text})
        ((_, fields),) = rig.client.xrange(rig.keys.inbox)
        rig.client.xdel(rig.keys.inbox, ident)
        later = int(ahead.timestamp() * 1000) + (loc == "now")
        rig.client.xadd(rig.keys.inbox, fields, id=f"{later}-0")
        rig.settle()

    report = wrong(examine(rig))

    assert set(report) == {"future-lastmod"}
    assert report["future-lastmod"].severity == WARNING
    assert [each.where for each in report["future-lastmod"].samples] == [BASE + "soon"]


def test_what_the_store_has_damaged_is_found(rig: Rig) -> None:
    key = rig.keys.blocks(Shard("pages", 2))
    stored = rig.client.hget(key, "0")
    assert stored
    rig.client.hset(key, "0", stored[:-9] + bytes(9))

    report = wrong(examine(rig))

    assert report["malformed"].found == 3
    assert report["malformed"].samples[0].where == "pages-2.xml"
    assert set(report) == {"malformed", "different-file"}


def test_what_no_publisher_writes_is_found_block_by_block(rig: Rig) -> None:

    raw = b"<url><loc>%bp/3</loc><lastmod>yesterday</lastmod></url>\n" % BASE.encode()
    other = b"<url><loc>%bp/4</loc><changefreq>&</changefreq></url>\n" % BASE.encode()
    rig.client.hset(rig.keys.blocks(Shard("pages", 2)), "0", blocks.deflate(raw, 1).pack())
    rig.client.hset(rig.keys.blocks(Shard("pages", 3)), "0", blocks.deflate(other, 1).pack())

    samples = wrong(examine(rig))["malformed"].samples

    assert [each.where for each in samples] == ["pages-2.xml", "pages-3.xml"]
    assert "not well-formed" in samples[1].detail


def test_pages_that_robots_txt_forbids_are_found(rig: Rig) -> None:
    """PROTOCOL R10."""
    for rules, barred in (
        ("User-agent: *\nDisallow: /p/1", {"p/1"}),
        ("User-agent: Googlebot\nDisallow: /*/2$\n", {"p/2"}),
        ("user-agent: bingbot\nuser-agent: other\nDisallow: /p/%33\n", {"p/3"}),
        ("User-agent: *\nDisallow: /\nAllow: /p/\nAllow: /*.xml\n", set()),
        ("User-agent: BadBot\nDisallow: /\n", set()),
        ("User-agent: *\nDisallow: /sitemap\nDisallow: /*-4.xml", {"sitemap.xml", "pages-4.xml"}),
        ("\ufeffUser-agent: *\nDisallow: /p/4\n", {"p/4"}),
    ):
        (rig.root / "robots.txt").write_text(rules + RIGHT)

        where = found(rig).get("robots-blocked", set())

        assert {loc.removeprefix(BASE) for loc in where} == barred


def test_the_agents_that_are_forbidden_a_page_are_named(rig: Rig) -> None:
    (rig.root / "robots.txt").write_text("User-agent: Bingbot\nDisallow: /p/1\n" + RIGHT)

    (sample,) = wrong(examine(rig))["robots-blocked"].samples

    assert sample == FindingSample(BASE + "p/1", "Bingbot: robots.txt")


def test_a_robots_txt_below_the_host_is_no_robots_txt(store: redis.Redis, root: Path) -> None:
    rig = Rig(store, root, base_url=BASE + "shop/")
    rig.do({"type": "upsert", "loc": "shop/a"})
    (root / "robots.txt").write_text("User-agent: *\nDisallow: /\n" + RIGHT)

    assert found(rig) == {}


def test_news_that_stayed_is_found(store: redis.Redis, root: Path) -> None:
    """PROTOCOL W4: nobody was there when its hour came."""
    rig = Rig(store, root, sections=NEWS)
    rig.send({"type": "upsert", "loc": "old", "news": article(49)})
    rig.send({"type": "upsert", "loc": "new", "news": article(47)})
    then = (datetime.now(UTC) - timedelta(hours=2)).timestamp()
    with silence():
        InboxConsumer(rig.settings, rig.client, rig.name, "w1", lambda: then).run()

    where = found(rig)

    assert where == {"stale-news": {BASE + "old"}, "overdue": {BASE + "old"}}
    with silence():
        rig.pump().expire()
    rig.settle()
    assert found(rig) == {}


def version(path: str, **hrefs: str) -> dict[str, Any]:
    links = [{"hreflang": code, "href": BASE + href} for code, href in hrefs.items()]
    return {"type": "upsert", "loc": path, "alternates": links}


def test_alternates_that_are_not_returned_are_found(rig: Rig) -> None:
    """PROTOCOL H2, H3: of sets that senders state; a group is always whole."""
    rig.do(
        version("a/de", de="a/de", en="a/en"), version("a/en", de="a/de", en="a/en"),
        version("b/de", de="b/de", en="b/en", fr="p/1"), version("b/en", de="b/de", en="b/en"),
        version("c/de", de="c/de", en="gone"),
        *(
            {"type": "upsert", "loc": f"g/{n}", "group": "g", "lang": n}
            for n in ("de", "en", "de-AT")
        ),
    )  # fmt: skip

    assert found(rig) == {"one-way": {BASE + "b/de", BASE + "c/de"}}
    samples = wrong(examine(rig))["one-way"].samples
    (detail,) = [each.detail for each in samples if each.where == BASE + "c/de"]
    assert detail == f"{BASE}gone does not name it"
    rig.do(version("b/de", de="b/de", en="b/en"), {"type": "delete", "loc": "c/de"})
    assert found(rig) == {}


def test_what_a_site_below_the_directory_of_another_lists_is_unknown_to_that(rig: Rig) -> None:
    rig.do(version("home", en="home", fr="fr/"), version("here", en="here", de="there"))
    examination = Examination(rig.client, rig.name, rig.site, "test", elsewhere=[f"{BASE}fr/"])

    finding = wrong(examination.run(served=False))["one-way"]

    assert [each.where for each in finding.samples] == [f"{BASE}here"]


def test_a_news_file_of_more_than_1000_urls_is_found(store: redis.Redis, root: Path) -> None:
    """PROTOCOL W3: a section of normal pages was configured for news."""
    Rig(store, root, sections={"news": {}}).do(
        *({"type": "upsert", "loc": f"{n}", "section": "news"} for n in range(1_001))
    )

    assert found(Rig(store, root, sections=NEWS))["news-too-many"] == {"news-1.xml"}


def test_a_page_in_two_sections_is_found(rig: Rig) -> None:
    """PROTOCOL L10."""
    rig.do({"type": "upsert", "loc": "post", "section": "posts"})
    copied = rig.client.hget(rig.keys.blocks(Shard("pages", 2)), "0")
    assert copied
    rig.client.hset(rig.keys.blocks(Shard("posts", 1)), "77", copied)

    finding = wrong(examine(rig))["duplicate"]

    assert finding.found == 3
    assert {each.detail for each in finding.samples} == {"pages-2.xml, posts-1.xml"}
    assert all(each.where.startswith(BASE + "p/") for each in finding.samples)


def test_a_page_that_is_news_too_is_no_duplicate(store: redis.Redis, root: Path) -> None:
    rig = Rig(store, root, sections=NEWS)
    rig.do({"type": "upsert", "loc": "new", "news": article(1)})

    assert found(rig) == {}
    assert examine(rig).pages == 2


@pytest.mark.parametrize("flush", [1, 2, 1_000])
def test_doubles_are_found_however_little_is_kept_in_memory(rig: Rig, flush: int) -> None:
    """A page that only moved while its shards were looked at is none."""
    copied = rig.client.hget(rig.keys.blocks(Shard("pages", 2)), "0")
    assert copied
    rig.client.hset(rig.keys.blocks(Shard("pages", 3)), "77", copied)
    twice, doubled = DuplicatePages(flush), [f"{BASE}p/{n}" for n in (3, 4, 5)]
    moved = f"{BASE}p/0"
    twice.note(Shard("pages", 1), [moved])
    twice.note(Shard("pages", 2), [moved, *doubled])
    twice.note(Shard("pages", 3), [f"{BASE}{n}" for n in range(5_000)] + doubled)

    said = list(twice.found(PageScan(rig.client, rig.name), lambda _: None))
    twice.close()

    assert {(loc, times) for loc, times, _ in said} == {(loc, 1) for loc in doubled}


def test_files_that_are_not_of_the_state_are_found(rig: Rig) -> None:
    (rig.root / "pages-1.xml").unlink()
    (rig.root / "pages-2.xml").write_bytes(b"<urlset/>")
    (rig.root / "pages-99.xml").write_bytes(b"<urlset/>")
    (rig.root / "theirs.xml").write_bytes(b"<urlset/>")

    report = examine(rig)

    assert found(rig) == {
        "missing-file": {"pages-1.xml"}, "different-file": {"pages-2.xml"},
        "extra-file": {"pages-99.xml"},
    }  # fmt: skip
    assert report.severity == ERROR


def test_a_file_that_is_published_meanwhile_is_no_finding(rig: Rig) -> None:
    """What differs once and is right when it is looked at again was being published."""
    path = rig.root / "pages-2.xml"
    content, at = path.read_bytes(), path.stat().st_mtime_ns
    path.write_bytes(b"of a moment ago")
    checks = CheckStore(rig.client, rig.name)

    def put_back() -> None:
        progress = checks.progress()
        if progress and progress.what == "files" and path.stat().st_mtime_ns != at:
            if path.read_bytes() != content:
                looks.append(1)
            if len(looks) > 12:
                path.write_bytes(content)

    looks: list[int] = []
    report = Examination(rig.client, rig.name, rig.site, "test", put_back).run(served=False)

    assert looks
    assert wrong(report) == {}


def test_pages_that_a_reconcile_refused_to_delete_are_shown(rig: Rig) -> None:
    """RELIABILITY T32: so few that it can hardly be the right source."""
    with pytest.raises(ReconcileError):
        reconcile(rig, [record("p/0"), record("new")])

    findings = wrong(examine(rig))

    assert {name: each.found for name, each in findings.items()} == {"missing": 1, "extra": 9}
    assert findings["missing"].samples[0].where == BASE + "new"
    assert "sitemapd reconcile" in findings["extra"].todo


def test_what_a_reconcile_has_repaired_is_told_and_no_finding(rig: Rig) -> None:
    reconcile(rig, [*(record(f"p/{n}") for n in range(9)), record("new")])

    report = examine(rig)

    assert wrong(report) == {}
    (missing,) = (each for each in report.findings if each.check == "missing")
    assert (missing.severity, missing.found) == (OK, 0)
    assert missing.means.endswith(": 1, repaired.")


def test_a_source_that_could_not_be_read_is_told(rig: Rig) -> None:
    refusal = RecordRefusal("page 2", "N4", "answered 500", whole=True)
    reconcile(rig, [*(record(f"p/{n}") for n in range(9)), refusal])

    report = examine(rig)

    assert {name: each.found for name, each in wrong(report).items()} == {"extra": 1}
    (finding,) = (each for each in report.findings if each.check == "source")
    assert finding.severity == WARNING
    assert "answered 500" in finding.samples[0].detail


def test_what_one_section_differs_in_says_nothing_of_the_site(rig: Rig) -> None:
    reconcile(rig, [], Scope(section="posts"))

    assert CheckStore(rig.client, rig.name).compared() is None


def test_without_a_source_the_way_to_one_is_told(rig: Rig) -> None:
    (finding,) = (each for each in examine(rig).findings if each.check == "source")

    assert "--against SOURCE" in finding.todo


def test_a_report_comes_back_as_it_was_stored(rig: Rig) -> None:
    (rig.root / "pages-1.xml").unlink()
    report = examine(rig)

    assert CheckStore(rig.client, rig.name).latest() == report
    assert report.plain()["findings"][0]["check"] == "wrong-host"
