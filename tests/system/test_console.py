"""The console in a real browser, against everything running: by keyboard, without script."""

from __future__ import annotations

import functools
import json
import re
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import redis
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.system.driver import System, wait_until

BASE = "https://www.example.com"
TOKEN = "only-for-these-tests-only-for-these"
CONFIG = f"""
[console.users.admin]
token = "{TOKEN}"
role = "operator"
[console.users.reader]
token = "{TOKEN}-reader"
[sites.demo]
base_url = "{BASE}"
web_root = "public"
robots = "create"
secrets = ["whsec_b25seS1mb3ItdGhlc2UtdGVzdHMtb25seQ=="]
sections = {{ posts = {{}} }}
[sites.demo.notify]
hosts = ["127.0.0.1"]
[sites.demo.notify.crawler]
url = "http://127.0.0.1:9/?sitemap={{sitemap}}"
allow_private = true
[sites.second]
base_url = "https://second.example"
web_root = "second"
tokens = ["{TOKEN}-second"]
"""
LISTED = f"{BASE}/hello-world"
POISON = f'{{"v":1,"type":"upsert","loc":"{BASE}/stuck","noindex":"no boolean"}}'
"""A stored event that no worker can apply."""
PAGES = {
    "Overview": "/admin/?site=demo",
    "Sites": "/admin/sites?site=demo",
    "Files": "/admin/files?site=demo",
    "Events": "/admin/events?site=demo",
    "Queues": "/admin/queues?site=second",
    "Failed": "/admin/failed?site=second",
    "Page inspector": f"/admin/inspector?loc={LISTED}",
    "Checks": "/admin/checks?site=demo",
    "Workers": "/admin/workers",
    "Notifications": "/admin/notifications?site=demo",
    "Index status": "/admin/index-status?site=demo",
    "Audit": "/admin/audit",
}
FILE = "/admin/files?site=demo&file=posts-1.xml"
ALSO = (
    "/admin/", "/admin/events", "/admin/queues", "/admin/failed",
    "/admin/inspector", "/admin/inspector?loc=https://evil.example/", "/admin/nothing",
    f"/admin/events/one?site=demo&id={LISTED}", "/admin/events/replay-all?site=demo",
    "/admin/queues/purge?site=demo", "/admin/failed?site=second&error=",
    "/admin/failed/ask?site=second&do=discard&all=yes",
)  # fmt: skip

STEPS = ("Accepted", "Decided", "Applied", "Published")
COLOURS = {"runOnly": ["color-contrast"]}
LOOKS: dict[tuple[Any, int], dict[str, Any]] = {
    ("light", 390): {}, ("dark", 390): COLOURS, ("dark", 1440): {}, ("light", 1440): COLOURS,
}  # fmt: skip

Enter = Callable[..., Page]


@pytest.fixture(scope="module")
def console(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    """A running system with a page, and with something of everything that needs somebody."""
    system = System(tmp_path_factory.mktemp("console") / "home")
    system.configure(CONFIG)
    (system.home / "second").mkdir()
    system.start()
    try:
        system.send({"type": "upsert", "loc": LISTED, "section": "posts", "lastmod": "2026-11-20"})
        wait_until(lambda: LISTED in system.published(), "the page is published")
        with store(system) as client:
            for shard in ("pages/1", "pages/2"):
                client.hset("{second}:held", shard, f"{int(time.time())} 10 100")
            client.zadd("{second}:resync", {"section posts": 1_795_000_000_000})
            client.xadd("{second}:dead", {"e": b"nothing"})
            client.hset("{second}:paused", "notify", "1795000000000 somebody")
            client.xadd("{demo}:inbox", {"e": POISON})
        yield system
    finally:
        assert system.stop() == 0


def store(system: System) -> redis.Redis:
    return redis.Redis(unix_socket_path=str(system.home / "redis" / "redis.sock"))


@pytest.fixture(scope="module")
def states(chromium: Browser, console: System) -> Callable[[str], Any]:
    """The cookies of a browser in which a user has logged in."""

    @functools.cache
    def state(user: str) -> Any:
        context = chromium.new_context()
        page = context.new_page()
        page.goto(link(console, user))
        page.get_by_role("button", name="Log in").click()
        page.wait_for_url(f"{console.address}/admin/")
        found = context.storage_state()
        context.close()
        return found

    return state


@pytest.fixture
def enter(chromium: Browser, console: System, states: Callable[[str], Any]) -> Iterator[Enter]:
    """Opens a browser that is logged in; nothing may fail or be refused by its policy."""
    opened: list[BrowserContext] = []
    faults: list[str] = []

    def log_in(user: str = "admin", **options: Any) -> Page:
        context = chromium.new_context(storage_state=states(user), **options)
        context.set_default_timeout(30_000)
        opened.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on(
            "console",
            lambda said: faults.append(said.text) if "Content Security" in said.text else None,
        )
        page.goto(f"{console.address}/admin/")
        return page

    yield log_in
    for context in opened:
        context.close()
    assert faults == []


def link(console: System, user: str = "admin") -> str:
    made = console.run("console", "link", "--user", user, "--to", console.address)
    assert made.returncode == 0, made.stderr
    return made.stdout.strip()


def test_a_page_is_found_by_keyboard_alone(console: System, chromium: Browser) -> None:
    page = chromium.new_page()
    page.goto(link(console))

    def tab_to(name: str, role: str = "link") -> None:
        """Press Tab until that is reached; each stop on the way must be seen."""
        for _ in range(40):
            page.keyboard.press("Tab")
            seen = page.evaluate(
                """() => {
                  const at = document.activeElement, box = at.getBoundingClientRect();
                  return getComputedStyle(at).outlineStyle !== 'none' && box.top >= 0;
                }"""
            )
            assert seen, page.evaluate("() => document.activeElement.outerHTML")
            wanted = page.get_by_role(role, name=name, exact=True)  # type: ignore[arg-type]
            if wanted.evaluate("each => each === document.activeElement"):
                return
        pytest.fail(f"{name} cannot be reached")

    expect(page.get_by_role("button", name="Log in")).to_be_focused()
    page.keyboard.press("Enter")
    page.wait_for_url(f"{console.address}/admin/")
    tab_to("Skip to the content")
    page.keyboard.press("Enter")
    assert page.evaluate("() => document.activeElement.id") == "main"
    page.goto(f"{console.address}/admin/")
    tab_to("Page inspector")
    page.keyboard.press("Enter")
    page.wait_for_url("**/admin/inspector")
    tab_to("URL of a page, its path, or a part of it:", "textbox")
    page.keyboard.type(LISTED)
    page.keyboard.press("Enter")

    expect(page.get_by_text("Listed", exact=True)).to_be_visible()
    expect(page.get_by_role("link", name="posts-1.xml").first).to_be_visible()
    expect(page.get_by_role("rowheader", name="added")).to_be_visible()
    current = page.get_by_role("link", name="Page inspector").and_(page.locator("[aria-current]"))
    expect(current).to_have_count(1)
    page.close()


def test_a_link_is_made_for_known_users_only_and_its_making_is_recorded(
    console: System, enter: Enter
) -> None:
    unknown = console.run("console", "link", "--user", "nobody")
    made = console.run("console", "link", "--json")
    elsewhere = console.run("console", "link", "--to", "https://www.example.net")

    assert (unknown.returncode, "there are: admin, reader" in unknown.stderr) == (78, True)
    assert json.loads(made.stdout)["link"].startswith(f"{console.address}/admin/login?once=")
    assert (elsewhere.returncode, "does not answer at" in elsewhere.stderr) == (78, True)
    assert "once=" not in elsewhere.stdout + elsewhere.stderr
    page = enter()
    page.goto(f"{console.address}/admin/audit")
    expect(page.get_by_role("cell", name="made for admin").first).to_be_visible()


def test_a_token_logs_in_and_a_logout_ends_it(console: System, chromium: Browser) -> None:
    page = chromium.new_page()
    page.goto(f"{console.address}/admin/audit")
    page.get_by_label("User").fill("reader")
    page.get_by_label("Token").fill(f"{TOKEN}-reader")
    page.get_by_role("button", name="Log in").click()

    expect(page.get_by_role("heading", name="Audit")).to_be_visible()
    expect(page.get_by_role("cell", name="logged in with a token").first).to_be_visible()
    page.get_by_role("button", name="Log out").click()
    expect(page.get_by_role("heading", name="Log in")).to_be_visible()
    page.go_back()
    expect(page.get_by_role("heading", name="Log in")).to_be_visible()
    page.close()


def violations(page: Page, rules: dict[str, Any]) -> list[dict[str, Any]]:
    """What Axe finds wrong. A page gets it once: it is half a megabyte of script."""
    if not page.evaluate("() => 'axe' in window"):
        page.evaluate(Axe().axe_script)
    options = json.dumps(rules | {"resultTypes": ["violations"]})
    return list(page.evaluate(f"axe.run({options}).then(found => found.violations)"))


@pytest.mark.parametrize("part", range(3))
def test_no_page_has_a_barrier_or_is_wider_than_its_screen(
    enter: Enter, console: System, part: int
) -> None:
    """Axe's rules in light and narrow, in dark and wide; between them only colours may differ."""
    page = enter(reduced_motion="reduce")  # no colour is caught on its way
    found = list[str]()

    def look(path: str) -> None:
        page.goto(console.address + path)
        assert page.locator("h1").count() == 1
        for (scheme, width), rules in LOOKS.items():
            page.emulate_media(color_scheme=scheme)
            page.set_viewport_size({"width": width, "height": 900})
            for each in violations(page, rules):
                found.append(f"{path} {scheme} {width} {each['id']} {each['nodes'][0]['html']}")
            assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
        page.set_viewport_size({"width": 360, "height": 900})
        assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")

    page.goto(console.address + FILE)
    below = page.locator("main table a").evaluate_all("all => all.map(a => a.getAttribute('href'))")
    for path in (*PAGES.values(), *ALSO, FILE, below[0])[part::3]:
        look(path)
    if part == 0:
        page.context.clear_cookies()
        look("/admin/login?next=/admin/audit")

    assert found == []


def test_on_a_phone_the_menu_leads_to_each_page(enter: Enter) -> None:
    page = enter(viewport={"width": 390, "height": 800})

    for name in PAGES:
        page.locator("#menu > summary").click()
        page.get_by_role("navigation", name="Pages").get_by_role("link", name=name).click()
        expect(page.locator("#menu > summary")).to_have_text(name)


def test_what_changes_is_seen_without_a_reload_and_keeps_the_focus(
    enter: Enter, console: System
) -> None:
    page = enter()
    page.locator("#fleet").get_by_role("link", name="demo", exact=True).click()
    card = page.locator("#site-demo")
    urls = card.locator(".tile", has_text="URLs").locator("dd")
    before = int(urls.inner_text().split()[0])
    base = card.get_by_role("link", name=BASE)
    base.focus()
    page.evaluate("() => { window.sameDocument = true; }")

    console.send({"type": "upsert", "loc": f"{BASE}/live-{time.time_ns()}"})

    expect(urls).to_have_text(str(before + 1))
    expect(base).to_be_focused()
    assert page.evaluate("() => window.sameDocument")


def test_a_page_says_that_its_session_has_ended(enter: Enter) -> None:
    page = enter()
    page.context.clear_cookies()

    expect(page.get_by_text("Your session has ended")).to_be_visible()


def test_an_action_is_done_and_the_equal_command_is_copied(enter: Enter) -> None:
    page = enter(permissions=["clipboard-read", "clipboard-write"])
    page.get_by_role("link", name="Look and confirm of second").click()
    held = page.locator(".held li", has_text="pages/1")
    command = "sitemapd confirm pages/1 --site second"
    held.get_by_role("button", name="Copy").click()
    expect(held.get_by_role("button", name="Copied")).to_be_visible()
    assert page.evaluate("() => navigator.clipboard.readText()") == command

    held.get_by_role("button", name="Confirm removals").click()

    expect(page.get_by_text("pages/1 may shrink from 100 to 10 pages")).to_be_visible()
    expect(held).to_have_count(0)


def test_without_script_everything_is_there(enter: Enter, console: System) -> None:
    page = enter("reader", java_script_enabled=False)

    expect(page.get_by_text("The shrink guard holds")).to_be_visible()
    page.get_by_role("link", name="second", exact=True).first.click()
    expect(page.get_by_text("sitemapd confirm pages/2 --site second")).to_be_visible()
    expect(page.get_by_role("button", name="Confirm removals")).to_have_count(0)
    expect(page.get_by_role("button", name="Copy").first).to_be_hidden()
    for name in PAGES:
        page.get_by_role("link", name=name, exact=True).click()
        expect(page.get_by_role("heading", level=1)).to_be_visible()
    page.goto(f"{console.address}/admin/sites")
    page.get_by_text("Site demo").first.click()
    page.get_by_role("link", name="second").click()
    expect(page.get_by_role("heading", name="Site second")).to_be_visible()


def test_a_worker_is_quieted_and_resumed(enter: Enter, console: System) -> None:
    page = enter()
    page.goto(f"{console.address}/admin/workers")
    state = page.locator("#living .badge").first
    expect(state).to_have_text("working")

    page.get_by_role("button", name="Quiet").click()
    expect(page.get_by_text("asked to be quiet")).to_be_visible()
    expect(state).to_have_text("quiet")
    page.get_by_role("button", name="Resume").click()

    expect(state).to_have_text("working")


def test_a_change_is_found_in_its_file_and_taken_back(enter: Enter, console: System) -> None:
    loc = f"{BASE}/taken-back"
    console.send({"type": "upsert", "loc": loc, "section": "posts"})
    wait_until(lambda: loc in console.published(), "the page is published")
    page = enter()
    page.get_by_role("link", name="Files", exact=True).click()
    page.get_by_role("link", name="posts-1.xml").click()
    page.get_by_role("link", name="1 line").first.click()
    expect(page.locator(".change .after")).to_contain_text(f"<loc>{loc}</loc>")

    page.get_by_role("link", name="Roll back this and all later publishes").click()
    page.get_by_role("button", name="Send 1 event").click()

    expect(page.get_by_text("0 pages back, 0 changed, 1 gone")).to_be_visible()
    wait_until(lambda: loc not in console.published(), "it is taken back")


def test_what_became_of_a_request_is_seen(enter: Enter, console: System) -> None:
    page = enter()
    page.goto(f"{console.address}/admin/notifications?site=demo")

    row = page.locator("#requests tbody tr").first
    expect(row).to_contain_text("crawler")
    expect(row).to_contain_text("failed")
    expect(page.locator("#engines .concern").first).to_contain_text("127.0.0.1")


def test_an_event_arrives_before_ones_eyes(enter: Enter, console: System) -> None:
    page = enter()
    page.goto(f"{console.address}/admin/events?site=demo&url=arrives")
    expect(page.get_by_text("No event matches the filter.")).to_be_visible()
    page.evaluate("() => { window.sameDocument = true; }")
    loc = f"{BASE}/arrives-{time.time_ns()}"

    console.send({"type": "upsert", "loc": loc})

    page.get_by_role("link", name=loc).click()
    expect(page.get_by_text("Published", exact=True).first).to_be_visible()
    for at, step in enumerate(STEPS):
        expect(page.locator(".steps li").nth(at)).to_have_text(re.compile(step))
    expect(page.get_by_text("It was not listed.")).to_be_visible()


def test_a_stuck_event_is_found_understood_and_replayed_in_three_clicks(enter: Enter) -> None:
    page = enter()
    said = "stored event cannot be read"
    mine = page.locator("#attention li").filter(
        has=page.get_by_role("link", name="demo", exact=True)
    )
    expect(mine.get_by_text("1 event failed five times")).to_be_visible()

    mine.get_by_role("link", name="See why, then retry of demo").click()
    expect(page.get_by_role("heading", name=said)).to_be_visible()
    page.get_by_role("link", name=f"{BASE}/stuck").click()
    expect(page.locator(".steps .dead")).to_contain_text(said)
    expect(page.locator("pre").get_by_text("no boolean")).to_be_visible()
    page.get_by_role("button", name="Replay").click()

    expect(page.get_by_text("1 event accepted again")).to_be_visible()
    # What was wrong with it was not mended: it fails again, before one's eyes.
    expect(page.get_by_text("Failed", exact=True).first).to_be_visible()
    page.get_by_role("link", name="Discard").click()
    page.get_by_role("button", name="Discard: 1 event").click()
    expect(page.get_by_text("1 event discarded")).to_be_visible()
    expect(page.get_by_text("No failed events.")).to_be_visible()


def test_what_is_paused_waits_and_is_published_when_it_goes_on(
    enter: Enter, console: System
) -> None:
    page = enter()
    page.goto(f"{console.address}/admin/queues?site=demo")
    card, loc = page.locator("#queue-events"), f"{BASE}/waits-{time.time_ns()}"
    card.get_by_role("button", name="Pause").click()
    expect(page.get_by_text("paused: events are accepted and wait")).to_be_visible()

    console.send({"type": "upsert", "loc": loc})

    expect(card.locator(".tile", has_text="Waiting").locator("dd")).to_have_text("1")
    card.get_by_role("link", name="Waiting events").click()
    page.get_by_role("link", name=loc).click()
    expect(page.get_by_text("Events are paused by admin.")).to_be_visible()
    watching = page.context.new_page()
    watching.goto(page.url)
    page.get_by_role("link", name="Resume them").click()
    card.get_by_role("button", name="Resume").click()
    expect(page.get_by_text("running").first).to_be_visible()
    expect(watching.get_by_text("Published", exact=True).first).to_be_visible()
    assert loc in console.published()


def test_a_check_is_asked_for_and_what_it_finds_is_seen(enter: Enter, console: System) -> None:
    (console.root / "pages-9.xml").write_text("<urlset/>")
    page = enter()
    page.goto(f"{console.address}/admin/?site=demo")
    page.locator("#site-demo").get_by_role("link", name="never").click()
    expect(page.get_by_text("This site was never checked.")).to_be_visible()

    page.get_by_role("button", name="Check now").click()

    found = page.locator("#finding-extra-file")
    expect(found).to_contain_text("pages-9.xml", timeout=90_000)  # it asks the web for robots.txt
    expect(page.locator("#last")).to_contain_text("admin")
    expect(page.locator("#now .concern")).to_have_count(0)
    (console.root / "pages-9.xml").unlink()
    page.get_by_role("link", name="Overview").click()
    expect(page.locator("#site-demo .tile", has_text="Checked")).to_contain_text("warning")
