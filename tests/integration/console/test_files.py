"""Files in the console: what they hold, what each publish changed, and taking that back."""

from __future__ import annotations

import html
import re
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import redis
from lxml import html as page_of

from shared.sitemap import shards
from shared.sitemap.shards import Shard
from shared.store.operations.checks import CheckFinding, CheckReport, CheckStore, FindingSample
from shared.store.publishing.publish_batch import PublishedFile
from shared.store.publishing.revisions import ChangedLine, Revisions
from tests.integration.console.browsing import Browser, Configure, outcomes, with_site
from tests.integration.rig import BASE, Rig
from worker.publishing.shard_file import pack_lines

CANARY = "<script>alert(1)</script>"
PAGES = Shard("pages", 1)
FILE = "/admin/files?site=demo&file=pages-1.xml"


@pytest.fixture
def rig(store: redis.Redis, tmp_path: Path) -> Rig:
    return Rig(store, tmp_path / "a")


def upsert(loc: str, **members: Any) -> dict[str, Any]:
    return {"type": "upsert", "loc": loc, **members}


def text(browser: Browser, path: str) -> str:
    answer = browser.get(path)
    assert answer.status_code == 200, path
    return " ".join(" ".join(page_of.fromstring(answer.text).itertext()).split())


def revisions(rig: Rig) -> list[str]:
    """The places of the revisions of the file, newest first."""
    return [each.at for each in Revisions(rig.client, rig.name).latest(PAGES)]


def plan(browser: Browser, to: str) -> dict[str, str]:
    """The form of the page of a planned rollback."""
    page = page_of.fromstring(browser.get(f"{FILE}&back={to}").text)
    (form,) = page.xpath("//form[@action='/admin/files/rollback']")
    return {each.get("name"): each.get("value") for each in form.xpath(".//input")}


def send(browser: Browser, form: dict[str, str]) -> str:
    """Press the button of that form; what is said then."""
    answer = browser.post("/admin/files/rollback", **form)
    assert answer.status_code == 303
    return browser.get(answer.location or "").text


def test_files_are_listed_against_their_limits(ann: Browser, rig: Rig) -> None:
    rig.do(upsert("a"), upsert("b"))
    rig.send(upsert("c"))
    size = rig.state.files(["pages"])[PAGES].size

    shown = text(ann, "/admin/files?site=demo")
    page = ann.get("/admin/files?site=demo").text

    assert "1 file with 2 pages" in shown
    assert re.search(
        rf"pages-1\.xml current unknown 2 of 10,000 {size} bytes of 52\.4 MB (now|\d+ s ago)",
        shown,
    )
    assert 'aria-label="2 of 10,000 URLs"' in page
    rig.client.zadd("{demo}:dirty", {"pages/1": 1})
    assert "pages-1.xml dirty" in text(ann, "/admin/files?site=demo")
    rig.client.hset("{demo}:held", "pages/1", "1 1 9")
    assert "pages-1.xml held" in text(ann, "/admin/files?site=demo")


def test_files_are_paged_and_filtered_by_section(
    ann: Browser, store: redis.Redis, rig: Rig
) -> None:
    rig.do(upsert("a"))
    state = rig.state.shards(["pages"])[PAGES].pack()
    file = PublishedFile(1, 1_795_000_000, 1, 100).pack()
    store.hset("{demo}:sections", "posts", 9)
    for n in range(1, 121):
        store.hset("{demo}:section:posts:shards", str(n), state)
        store.hset("{demo}:section:posts:files", str(n), file)

    page, seen = ann.get("/admin/files?site=demo&section=posts").text, list[str]()
    while True:
        seen += re.findall(r">(posts-\d+)\.xml</a>", page)
        assert "pages-1.xml" not in page
        older = re.search(r'href="([^"]+)" rel="next"', page)
        if older is None:
            break
        page = ann.get(html.unescape(older[1])).text

    assert seen == [f"posts-{n}" for n in range(1, 121)]
    assert "121 files" in text(ann, "/admin/files?site=demo&page=99999")
    assert ann.get("/admin/files?site=demo&section=none").status_code == 404
    for path in ("file=none.xml", "file=pages-1.xml&at=1-1", "file=pages-1.xml&back=x"):
        assert ann.get(f"/admin/files?site=demo&{path}").status_code == 404


@pytest.mark.parametrize("form", shards.FORMS)
def test_the_digest_is_that_of_the_file_whatever_its_form(
    configure: Configure, store: redis.Redis, tmp_path: Path, form: str
) -> None:
    rig = Rig(store, tmp_path / "a", form=form, block_urls=3)
    rig.do(*(upsert(f"p/{n}", lastmod="2026-01-01") for n in range(8)))
    if form not in shards.TEXT_FORMS:
        rig.do(upsert("p/1", images=[{"loc": f"{BASE}i.jpg"}]))
    (name,) = rig.shard_files()
    content = rig.shard_files()[name]
    browser = Browser(with_site(configure(), form=form))
    browser.login("ann")

    shown = text(browser, "/admin/files?site=demo&file=pages/1")

    digest = f"CRC-32 {zlib.crc32(content):08x} of {len(content):,} bytes before compression"
    assert digest in shown
    assert "published were" not in shown
    assert "Blocks 3 all intact" in shown


def test_a_damaged_block_is_pointed_out(ann: Browser, rig: Rig, store: redis.Redis) -> None:
    rig.do(upsert("a"))
    whole: Any = store.hget("{demo}:section:pages:blocks:1", "0")
    store.hset("{demo}:section:pages:blocks:1", "0", whole[:-12] + b"x" + whole[-11:])

    shown = text(ann, FILE)

    assert "Blocks 1 1 damaged" in shown
    assert "Block 1 of 1: a block is damaged in the store" in shown
    assert "CRC-32" not in shown


def checked(rig: Rig, began_ms: int, *findings: CheckFinding, served: bool = True) -> None:
    """A check found this."""
    run = CheckStore(rig.client, rig.name).begin("test")
    run.store(CheckReport(began_ms, began_ms, "test", 1, served, findings))
    run.end()


def test_what_a_publish_changed_is_shown_with_the_words_marked(ann: Browser, rig: Rig) -> None:
    rig.do(upsert("a", lastmod="2026-01-01"), upsert("b"))
    rig.do(upsert("a", lastmod="2026-02-01"), {"type": "delete", "loc": "b"}, upsert("c"))
    newest, oldest = revisions(rig)

    assert re.search(
        rf"3 lines this and all since 2 {newest} .* 2 lines this and all since 2 {oldest}",
        text(ann, FILE),
    )
    page = ann.get(f"{FILE}&at={newest}").text

    assert "<del>01</del>-01&lt;/lastmod&gt;" in page
    assert "<ins>02</ins>-01&lt;/lastmod&gt;" in page
    assert re.search(rf"Before: </span>&lt;url&gt;\s&lt;loc&gt;{BASE}b&lt;/loc&gt;", page)
    assert re.search(rf"After: </span>&lt;url&gt;\s&lt;loc&gt;{BASE}c&lt;/loc&gt;", page)
    shown = text(ann, f"{FILE}&at={newest}")
    assert [f"{BASE}{x}" in shown for x in ("a changed", "b removed", "c added")] == [True] * 3
    assert f"sitemapd files diff pages-1.xml --at {newest} --site demo" in shown


def test_many_lines_come_in_parts_and_too_many_are_only_counted(
    ann: Browser, rig: Rig, store: redis.Redis
) -> None:
    rig.do(*(upsert(f"p/{n:03}") for n in range(100)))
    (at,) = revisions(rig)

    page, seen = ann.get(f"{FILE}&at={at}").text, list[str]()
    while True:
        seen += re.findall(r'<article class="change" aria-label="[^"]+p/(\d+)"', page)
        older = re.search(r'href="([^"]+)" rel="next"', page)
        if older is None:
            break
        page = ann.get(html.unescape(older[1])).text
    assert seen == [f"{n:03}" for n in range(100)]

    fields: Any = {"shard": "pages/1", "file": "", "changed": 9_000, "lines": b""}
    at = store.xadd("{demo}:revisions", fields).decode()  # type: ignore[union-attr]
    assert ("9,000 lines too many to keep this and all since none: the file was removed") in text(
        ann, FILE
    )
    assert "There were too many: 9,000." in text(ann, f"{FILE}&at={at}")
    assert "This cannot be rolled back" in text(ann, f"{FILE}&back={at}")


def test_a_file_is_rolled_back_to_what_it_was(ann: Browser, rig: Rig, store: redis.Redis) -> None:
    rig.do(upsert("a", lastmod="2026-01-01"), upsert("b"))
    before = rig.shard_files()["pages-1"]
    rig.do(upsert("a", lastmod="2026-02-01"), {"type": "delete", "loc": "b"}, upsert("c"))
    to = revisions(rig)[0]

    said = text(ann, f"{FILE}&back={to}")
    assert "1 page back, 1 changed, 1 gone" in said
    assert "Send 3 events" in said
    assert f"sitemapd files rollback pages-1.xml --to {to} --site demo" in said
    assert "1 page back, 1 changed, 1 gone" in send(ann, plan(ann, to))

    rig.settle()
    assert rig.shard_files()["pages-1"] == before
    assert outcomes(store)[-1][:2] == ("ann", "files rollback")
    rig.check()
    assert "Nothing to roll back" in text(ann, f"{FILE}&back={to}")


def test_a_rollback_skips_what_has_changed_since_it_was_shown(ann: Browser, rig: Rig) -> None:
    rig.do(upsert("a", lastmod="2026-01-01"), upsert("b", lastmod="2026-01-01"))
    rig.do(upsert("a", lastmod="2026-02-01"), upsert("b", lastmod="2026-02-01"), upsert("c"))
    shown = plan(ann, revisions(rig)[0])
    rig.do(upsert("b", lastmod="2026-03-01"), upsert("d"))
    rig.send(upsert("c", lastmod="2026-03-01"))
    rig.pump().run()

    assert "0 pages back, 1 changed, 0 gone, 2 skipped, changed since" in send(ann, shown)
    rig.settle()
    file = rig.shard_files()["pages-1"].decode()
    assert set(rig.listed()) == {f"{BASE}{x}" for x in "abcd"}
    assert [file.count(f"2026-0{month}-01") for month in (1, 2, 3)] == [1, 0, 2]
    rig.check()


def test_without_a_plan_or_with_nothing_left_of_it_nothing_is_rolled_back(
    ann: Browser, rig: Rig, store: redis.Redis
) -> None:
    rig.do(upsert("a"))
    rig.do(upsert("b"))
    usual = plan(ann, revisions(rig)[0])
    rig.do(upsert("b", lastmod="2026-03-01"))

    said = send(ann, usual)
    assert "nothing is left to do: 0 pages back, 0 changed, 0 gone, 1 skipped" in said
    for form in (
        {"site": "none"}, {"subject": "none.xml"}, {"to": "1-1"}, {"upto": ""}, {"at": "now"},
    ):  # fmt: skip
        ann.post("/admin/files/rollback", **usual | form)
    assert rig.quiet()
    assert [each[3] for each in outcomes(store)[-6:]] == [False] * 6
    assert set(rig.listed()) == {f"{BASE}{x}" for x in "ab"}


def test_t26_a_viewer_rolls_nothing_back(vic: Browser, rig: Rig) -> None:
    rig.do(upsert("a"))
    (to,) = revisions(rig)

    assert "Send 1 event" not in vic.get(f"{FILE}&back={to}").text
    answer = vic.post("/admin/files/rollback", site="demo", subject="pages-1.xml", csrf=vic.csrf())
    assert answer.status_code == 403
    assert rig.quiet()


def test_t27_no_look_at_files_changes_them(
    ann: Browser, rig: Rig, unchanged: Callable[[], Any]
) -> None:
    rig.do(upsert("a"))
    (to,) = revisions(rig)

    with unchanged():
        for path in (FILE, f"{FILE}&at={to}", f"{FILE}&back={to}", "/admin/files/rollback"):
            ann.get(path)


def test_t28_what_files_and_revisions_hold_is_text(
    ann: Browser, rig: Rig, store: redis.Redis
) -> None:
    rig.do(upsert("a"))
    line = f"<url><loc>{BASE}{CANARY}</loc></url>\n".encode()
    after = line.replace(b"</url>", b"<lastmod>" + CANARY.encode() + b"</lastmod></url>")
    pairs = [ChangedLine(line, after), ChangedLine(None, line), ChangedLine(line, None)]
    fields: Any = {"shard": "pages/1", "file": "", "changed": 3, "lines": pack_lines(pairs)}
    at = store.xadd("{demo}:revisions", fields).decode()  # type: ignore[union-attr]
    store.hset("{demo}:sections", CANARY, 9)
    sample = FindingSample(f"{BASE}pages-1.xml", CANARY)
    checked(rig, 2_000_000_000_000, CheckFinding("served", "error", 1, (sample,), CANARY, CANARY))

    for path in (
        FILE, f"{FILE}&at={at}", f"{FILE}&back={at}", "/admin/files", f"{FILE}&at={CANARY}",
        f"/admin/files?file={CANARY}", "/admin/", f"/admin/files?section={CANARY}&site=demo",
    ):  # fmt: skip
        answer = ann.get(path)
        assert answer.status_code in {200, 404}
        assert "<script>alert" not in answer.text
        assert not re.search(r"\son\w+=|\sstyle=|javascript:", answer.text)
    assert ann.get(f"{FILE}&at={at}").text.count("&lt;script&gt;") >= 6
