"""What the console shows, and does (RELIABILITY T28, T30), on a real store."""

from __future__ import annotations

import html
import json
import re
import time
from pathlib import Path

import redis

from shared.config.settings import Settings
from shared.events.event import parse
from shared.sitemap import urls
from shared.store.inbox.inbox import Inbox
from shared.store.layouts.version import CURRENT, FORM
from shared.store.operations.audit_log import AuditLog
from tests.integration.conftest import RedisServer, wait_until
from tests.integration.console.browsing import (
    CANARY,
    HERE,
    PAGES,
    SECRETS,
    TOKENS,
    Browser,
    Configure,
    outcomes,
)
from tests.integration.rig import Rig


def test_an_operator_acts_and_is_told_and_recorded(
    ann: Browser, held: str, store: redis.Redis
) -> None:
    assert "Confirm removals" in ann.get("/admin/?site=demo").text
    answer = ann.post("/admin/confirm", site="demo", subject=held, urls="10", csrf=ann.csrf())

    assert answer.status_code == 303
    assert not store.hexists("{demo}:held", held)
    assert "pages/1 may shrink from 100 to 10 pages" in ann.get(answer.location or "").text
    assert outcomes(store)[-1] == (
        "ann", "confirm", "pages/1 may shrink from 100 to 10 pages", True,
    )  # fmt: skip
    assert "pages/1 may shrink" in ann.get("/admin/audit").text


def test_pages_that_came_since_do_not_keep_a_file_from_shrinking_to_what_was_shown(
    ann: Browser, held: str, store: redis.Redis
) -> None:
    page = ann.act("/admin/confirm", site="demo", subject=held, urls="9")

    assert "pages/1 may shrink from 100 to 9 pages" in page
    assert store.hget("{demo}:allowed", f"confirmed {held}") == b"9"


def test_what_would_shrink_further_than_it_was_shown_is_not_done(
    ann: Browser, held: str, store: redis.Redis
) -> None:
    page = f"{HERE}/admin/sites?site=demo&did=1-1"
    form = {"site": "demo", "subject": held, "urls": "11", "csrf": ann.csrf()}
    back = ann.client.post(
        "/admin/confirm", base_url=HERE, data=form, headers={"Origin": HERE, "Referer": page}
    )
    assert re.fullmatch(r"/admin/sites\?site=demo&did=[0-9]+-[0-9]+", back.location or "")
    for site, subject, pages in (
        ("demo", held, "11"),
        ("demo", held, "many"),
        ("demo", "pages/2", "10"),
        ("no", held, "10"),
    ):
        answer = ann.post("/admin/confirm", site=site, subject=subject, urls=pages, csrf=ann.csrf())
        assert "Not done" in ann.get(answer.location or "").text
    assert store.hexists("{demo}:held", held)


def test_nobody_elses_outcome_is_shown_as_ones_own(ann: Browser, store: redis.Redis) -> None:
    ident = AuditLog(store).write("eve", "confirm", "a trick", way="console")

    for did in (ident, "0-1", "x", "9" * 99):
        assert "a trick" not in ann.get(f"/admin/?did={did}").text


def test_t28_what_senders_and_stores_say_is_text_and_no_script_runs(
    ann: Browser, store: redis.Redis, configure: Configure
) -> None:
    rules = configure().sites["demo"].rules
    loc = f"https://www.example.com/?{CANARY}"
    Inbox(store, "demo").accept([parse({"type": "upsert", "loc": loc}, rules)])
    known = urls.canonical(loc, rules.base)
    store.xadd("{demo}:recent", {"decided": json.dumps([["1-1", known, CANARY, True]])})
    store.hset("{demo}:held", f"{CANARY}/1", f"{int(time.time())} 10 100")
    store.zadd("{demo}:resync", {f"prefix {CANARY}": 1})
    AuditLog(store).write(CANARY, CANARY, CANARY, way="cli", site=CANARY, subject=CANARY)

    also = ("inspector?loc=", "sites?site=", "login?once=", "login?next=/admin/", "")
    for path in (
        *PAGES,
        f"/admin/inspector?loc={loc}",
        *(f"/admin/{each}{CANARY}" for each in also),
    ):
        answer = ann.get(path)
        assert "<script>alert" not in answer.text
        assert re.findall(r"<script\b[^>]*>", answer.text) == [
            tag
            for tag in re.findall(r"<script\b[^>]*>", answer.text)
            if "/admin/static/live." in tag
        ]
        assert not re.search(r"\son\w+=|\sstyle=|javascript:", answer.text)
        policy = answer.headers["Content-Security-Policy"]
        assert "default-src 'none'; style-src 'self'; script-src 'self'" in policy
    for path in ("/admin/audit", f"/admin/inspector?loc={loc}"):
        assert "&lt;script&gt;alert(1)" in ann.get(path).text


def test_every_answer_has_its_headers_and_only_files_may_be_kept(ann: Browser) -> None:
    page = ann.get("/admin/").text
    files = set(re.findall(r'"(/admin/static/[^"]+)"', page))
    answers = {path: ann.get(path) for path in (*PAGES, *files, "/admin/login", "/admin/static/x")}

    assert len(files) == 3
    for path, answer in answers.items():
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Referrer-Policy"] == "same-origin"
        assert answer.headers["Cross-Origin-Opener-Policy"] == "same-origin"
        kept = "immutable" in answer.headers["Cache-Control"]
        assert kept is (path in files)
        assert kept or answer.headers["Cache-Control"] == "no-store"
    assert all(re.search(r"\.[0-9a-f]{16}\.(css|js|svg)$", path) for path in files)


def test_t30_no_page_shows_a_secret_of_the_configuration(
    ann: Browser, configure: Configure
) -> None:
    known = [*SECRETS.values(), *TOKENS.values(), "SELECT loc"]
    known += [user.digest.hex() for user in configure().console.users.values()]

    for path in (
        *PAGES,
        "/admin/sites?site=other",
        "/admin/inspector?loc=https://www.example.com/a",
    ):
        text = ann.get(path).text
        assert [secret for secret in known if secret in text] == []
    assert "1 secret, 1 token" in ann.get("/admin/sites").text


def test_a_page_that_asks_for_itself_again_is_told_if_nothing_has_changed(
    ann: Browser, store: redis.Redis
) -> None:
    first = ann.get("/admin/sites", X_Live="1")
    tag = first.headers["ETag"]

    assert ann.get("/admin/sites", X_Live="1", If_None_Match=tag).status_code == 304
    store.hset("{demo}:section:pages:files", "1", "1 1 7 900")
    store.hset("{demo}:sections", "pages", "0")
    store.hset("{demo}:counters", FORM, CURRENT)
    changed = ann.get("/admin/sites", X_Live="1", If_None_Match=tag)
    assert (changed.status_code, changed.headers["ETag"] != tag) == (200, True)


def test_the_inspector_says_why_a_page_cannot_be_here(ann: Browser) -> None:
    other = ann.get("/admin/inspector?loc=https://evil.example/a")
    unknown = ann.get("/admin/inspector?loc=https://b.example/a")
    wrong = ann.get("/admin/inspector?loc=https://b.example/a&site=demo")

    assert other.status_code == wrong.status_code == 422
    assert "https://evil.example is another site" in other.text
    assert "https://b.example/" in other.text
    assert unknown.status_code == 200
    assert "Not listed" in unknown.text
    assert "sitemapd entry https://b.example/a --site other" in unknown.text


def test_the_audit_log_is_paged(ann: Browser, store: redis.Redis) -> None:
    for n in range(120):
        AuditLog(store).write("cli:root", "replay", f"number {n}.", way="cli")

    page, seen = ann.get("/admin/audit").text, list[str]()
    while True:
        seen += re.findall(r"number (\d+)\.", page)
        older = re.search(r'href="([^"]+)" rel="next"', page)
        if older is None:
            break
        page = ann.get(html.unescape(older[1])).text
    assert seen == [str(n) for n in reversed(range(120))]


def test_the_audit_log_stays_small_and_so_does_an_entry(store: redis.Redis) -> None:
    audit = AuditLog(store)
    ident = audit.write("x" * 5_000, "a", "b", way="cli")
    pipe = store.pipeline(transaction=False)
    for _ in range(10_500):
        pipe.xadd("{_sitemapd}:audit", {"who": "x"})
    pipe.execute()
    audit.write("last", "a", "b", way="cli")

    assert audit.find(ident) is None
    assert 10_000 <= store.xlen("{_sitemapd}:audit") <= 10_200
    assert audit.read("", 1)[0].who == "last"


def test_without_redis_the_page_says_so_and_comes_back(
    configure: Configure, fragile_redis: RedisServer
) -> None:
    settings = configure().model_copy(update={"redis_url": fragile_redis.url})
    browser = Browser(settings)
    assert browser.login("ann").status_code == 303
    fragile_redis.kill()

    answer = browser.get("/admin/")
    form = browser.get("/admin/login")
    fragile_redis.start()

    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "5")
    assert "Redis does not answer" in answer.text
    assert "frame-ancestors 'none'" in answer.headers["Content-Security-Policy"]
    assert form.status_code == 200
    wait_until(lambda: browser.get("/admin/").status_code == 200, "the session of before goes on")


def test_many_sites_come_in_parts_and_no_number_of_a_part_is_a_fault(
    configure: Configure, store: redis.Redis, tmp_path: Path
) -> None:
    site = {"base_url": "https://a.example", "tokens": ["t" * 20]}
    sites = {f"s{n}": site | {"web_root": tmp_path / str(n)} for n in range(100)}
    browser = Browser(Settings(**configure().model_dump() | {"sites": sites}))
    browser.login("ann")

    def shown(page: str) -> list[str]:
        text = browser.get(f"/admin/?page={page}").text
        return re.findall(r'<th scope="row"><a href="/admin/\?site=(s\d+)"', text)

    assert (
        shown("")
        == shown("0")
        == shown("x")
        == shown("²")
        == shown("%80")
        == [f"s{n}" for n in range(50)]
    )
    assert shown("1") == shown("2") == shown("9" * 5_000) == [f"s{n}" for n in range(50, 100)]
    assert store.dbsize() <= 4


def test_the_inspector_takes_a_path_and_a_part_of_a_url(
    ann: Browser, store: redis.Redis, tmp_path: Path
) -> None:
    other = Rig(store, tmp_path / "b", name="other", base_url="https://b.example")
    other.do(*({"type": "upsert", "loc": f"https://b.example/p/{n}"} for n in range(30)))
    other.do({"type": "upsert", "loc": "https://b.example/only-here"})

    path = ann.get("/admin/inspector?loc=/only-here").text
    part = ann.get("/admin/inspector?loc=NLY-h").text
    many = ann.get("/admin/inspector?loc=example/p/&site=other").text
    none = ann.get("/admin/inspector?loc=nowhere").text

    assert "https://b.example/only-here" in path
    assert "pages-1.xml" in path
    assert "/admin/inspector?loc=https://b.example/only-here&amp;site=other" in part
    assert "other: 1 of 1 files" in part
    assert many.count("<code>") >= 1
    assert "These are the first 20" in many
    assert "No published page in the searched files" in none
    assert "https://www.example.com/unknown" in ann.get("/admin/inspector?loc=/unknown").text
