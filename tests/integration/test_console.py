"""Who may see and do what in the console (RELIABILITY T26-T30), on a real store."""

from __future__ import annotations

import hashlib
import html
import json
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import redis
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from deploy import login_link
from shared import urls
from shared.events import parse
from shared.inbox import Inbox
from shared.settings import Settings
from shared.store.audit import Audit
from shared.store.logins import Logins
from tests.integration.conftest import RedisServer, wait_until
from tests.integration.rig import check_keys
from webhook.app import create_app

DOMAIN = "sitemaps.example.com"
HERE = f"https://{DOMAIN}"
NAME = "__Secure-sitemapd"
TOKENS = {"ann": "ann-token-1111111111111111", "vic": "vic-token-2222222222222222"}
PAGES = ("/admin/", "/admin/sites", "/admin/inspector", "/admin/audit")
CSRF = re.compile(r'name="csrf" value="([^"]+)"')
CANARY = "<script>alert(1)</script>"
SECRETS = {
    "token": "canary-token-333333333333",
    "source": "canary-source-444444",
    "key": "canary-key-5555",
    "hook": "canary-hook-66666666666",
    "secret": "Y2FuYXJ5" * 5,
}

Configure = Callable[..., Settings]


@pytest.fixture
def configure(redis_server: RedisServer, tmp_path: Path) -> Configure:
    """Settings with two users and two sites full of secrets."""

    def settings(**console: Any) -> Settings:
        users = {
            "ann": {"token": TOKENS["ann"], "role": "operator"},
            "vic": {"token_sha256": hashlib.sha256(TOKENS["vic"].encode()).hexdigest()},
        }
        site = {
            "base_url": "https://www.example.com", "web_root": tmp_path / "a", "robots": "create",
            "secrets": ["whsec_" + SECRETS["secret"]], "tokens": [SECRETS["token"]],
            "source": f"sql:postgresql+psycopg://u:{SECRETS['source']}@h/d",
            "source_key": SECRETS["key"], "source_query": "SELECT loc FROM pages",
            "sections": {"posts": {"split": "month"}},
            "sources": {"ghost": {"secret": SECRETS["hook"]}},
        }  # fmt: skip
        other = {"base_url": "https://b.example", "web_root": tmp_path / "b", "tokens": ["t" * 20]}
        return Settings(
            redis_url=redis_server.url,
            console={"origin": HERE, "users": users} | console,  # type: ignore[arg-type]
            sites={"demo": site, "other": other},  # type: ignore[dict-item]
        )

    return settings


class Browser:
    """What a browser does with the console: its cookie, and the headers of its forms."""

    def __init__(self, settings: Settings, origin: str = HERE) -> None:
        self.origin = origin
        self.client: FlaskClient = create_app(settings).test_client()

    def get(self, path: str, **headers: str) -> TestResponse:
        return self.client.get(path, base_url=self.origin, headers=headers)

    def post(self, path: str, *, origin: str | None = HERE, **form: str) -> TestResponse:
        headers = {} if origin is None else {"Origin": origin}
        return self.client.post(path, base_url=self.origin, headers=headers, data=form)

    def login(self, user: str, token: str = "", **form: str) -> TestResponse:
        token = token or TOKENS[user]
        return self.post("/admin/login", origin=self.origin, user=user, token=token, **form)

    def csrf(self) -> str:
        found = CSRF.search(self.get("/admin/").text)
        assert found is not None
        return found[1]

    def cookie(self) -> str:
        """The secret of its session."""
        found = self.client.get_cookie(NAME, DOMAIN, "/admin")
        assert found is not None
        return found.value

    def take(self, cookie: str) -> None:
        """Have the session of another browser."""
        self.client.set_cookie(NAME, cookie, domain=DOMAIN, path="/admin")


@pytest.fixture
def browser(configure: Configure, store: redis.Redis) -> Iterator[Browser]:
    yield Browser(configure())
    check_keys(store)


@pytest.fixture
def ann(browser: Browser) -> Browser:
    """Logged in as an operator."""
    assert browser.login("ann").status_code == 303
    return browser


@pytest.fixture
def vic(browser: Browser) -> Browser:
    """Logged in as a viewer."""
    assert browser.login("vic").status_code == 303
    return browser


@pytest.fixture
def held(store: redis.Redis) -> str:
    """A shard that the shrink guard holds."""
    store.hset("{demo}:held", "pages/1", f"{int(time.time())} 10 100")
    return "pages/1"


def outcomes(store: redis.Redis) -> list[tuple[str, str, str, bool]]:
    return [(e.who, e.action, e.outcome, e.done) for e in reversed(Audit(store).read())]


def test_without_users_there_is_nothing(configure: Configure, store: redis.Redis) -> None:
    browser = Browser(configure(users={}))

    for path in (*PAGES, "/admin", "/admin/login", "/admin/static/x.css"):
        answer = browser.get(path)
        assert (answer.status_code, answer.json["code"]) == (404, "not-found")  # type: ignore[index]
    assert browser.login("ann").status_code == 404
    assert not store.keys("{sitemapd}*")


@pytest.mark.parametrize("path", [*PAGES, "/admin", "/admin/nothing", "/admin/inspector?loc=x%26y"])
def test_t26_without_a_session_every_page_leads_to_the_login(browser: Browser, path: str) -> None:
    answer = browser.get(path)
    there = urlsplit(answer.location or "")

    assert (answer.status_code, there.path) == (303, "/admin/login")
    assert parse_qs(there.query).get("next", ["/admin/"])[0].rstrip("/") == path.rstrip("/")
    assert "demo" not in answer.text
    assert browser.get(path, X_Live="1").status_code == 401


def test_t26_without_a_session_nothing_is_done(browser: Browser, held: str) -> None:
    answer = browser.post("/admin/confirm", site="demo", subject=held, urls="10", csrf="")

    assert answer.status_code == 401
    assert "demo" not in answer.text


def test_t26_who_logs_in_comes_back_to_the_page_that_was_wanted(browser: Browser) -> None:
    assert browser.login("ann", next="/admin/audit").location == "/admin/audit"
    assert browser.login("ann", next="https://evil.example/admin/").location == "/admin/"
    for path in PAGES:
        assert browser.get(path).status_code == 200
    assert browser.get("/admin/nothing").status_code == 404
    assert browser.get("/admin/sites?site=none").status_code == 404


@pytest.mark.parametrize(
    ("user", "token"),
    [("ann", "wrong"), ("ann", TOKENS["vic"]), ("nobody", TOKENS["ann"]), ("", ""), ("ann", "é\0")],
)
def test_t26_a_wrong_token_is_refused_in_one_way(browser: Browser, user: str, token: str) -> None:
    answer = browser.post("/admin/login", user=user, token=token)

    assert answer.status_code == 401
    assert "No user has this name and token." in answer.text
    assert "Set-Cookie" not in answer.headers


def test_t26_tries_are_limited_for_one_user_and_a_link_is_still_a_way_in(
    browser: Browser, configure: Configure, store: redis.Redis
) -> None:
    statuses = [browser.login("ann", "wrong").status_code for _ in range(12)]
    late = browser.login("ann")

    assert statuses == [401] * 10 + [429] * 2
    assert (late.status_code, late.headers["Retry-After"]) == (429, "60")
    assert 0 < store.ttl("{sitemapd}:tries:ann") <= 60
    assert browser.login("vic").status_code == 303
    link = login_link.make(configure().console, store, HERE, "ann")
    once = parse_qs(urlsplit(link).query)["once"][0]
    assert browser.post("/admin/login/once", once=once).status_code == 303
    refused = [outcome for outcome in outcomes(store) if not outcome[3]]
    assert refused == [
        ("ann", "login", "more than 10 tries within 60 s: refused for a while", False)
    ]


def test_a_one_time_link_works_once_and_a_look_at_it_uses_nothing_up(
    browser: Browser, configure: Configure, store: redis.Redis
) -> None:
    link = login_link.make(configure().console, store, HERE)
    path, once = link.removeprefix(HERE), parse_qs(urlsplit(link).query)["once"][0]

    for _ in range(3):
        assert once in browser.get(path).text
    assert once.encode() not in b"".join(store.scan_iter())
    first = browser.post("/admin/login/once", once=once)
    assert (first.status_code, first.location) == (303, "/admin/")
    assert "ann" in browser.get("/admin/").text
    again = Browser(configure()).post("/admin/login/once", once=once)
    assert (again.status_code, "too old" in again.text) == (401, True)


def test_a_link_of_a_removed_user_leads_nowhere(browser: Browser, store: redis.Redis) -> None:
    once = Logins(store).link("gone")

    assert browser.post("/admin/login/once", once=once).status_code == 401


def test_the_cookie_is_for_our_own_pages_over_https_only(ann: Browser, store: redis.Redis) -> None:
    answer = ann.login("ann")
    name, _, rest = answer.headers["Set-Cookie"].partition("=")
    value, *attributes = rest.split("; ")

    assert name == NAME
    assert {"Secure", "HttpOnly", "Path=/admin", "SameSite=Strict", "Max-Age=43200"} <= set(
        attributes
    )
    assert len(value) == 43
    keys = store.keys("{sitemapd}:session:*")
    assert f"{{sitemapd}}:session:{hashlib.sha256(value.encode()).hexdigest()}".encode() in keys
    assert all(0 < store.ttl(key) <= 43_200 for key in keys)
    assert value.encode() not in b"".join(store.dump(key) or b"" for key in store.scan_iter())


def test_over_plain_http_on_this_machine_the_cookie_has_no_prefix(
    configure: Configure, store: redis.Redis
) -> None:
    browser = Browser(configure(origin=()), "http://127.0.0.1:8080")
    cookie = browser.login("ann").headers["Set-Cookie"]

    assert cookie.startswith("sitemapd=")
    assert "Secure" not in cookie
    assert "HttpOnly" in cookie
    assert browser.get("/admin/").status_code == 200
    assert store.keys("{sitemapd}:session:*")


def test_a_session_ends_with_its_logout(ann: Browser, store: redis.Redis) -> None:
    old = ann.cookie()
    answer = ann.post("/admin/logout", csrf=ann.csrf())

    assert (answer.status_code, answer.location) == (303, "/admin/login")
    assert ann.get("/admin/").status_code == 303
    ann.take(old)
    assert ann.get("/admin/").status_code == 303
    assert not store.keys("{sitemapd}:session:*")
    assert [outcome[1] for outcome in outcomes(store)] == ["login", "logout"]


@pytest.mark.parametrize(
    "users",
    [
        {"vic": {"token": "another-user-of-this-console"}},
        {"ann": {"token": "a-new-token-for-this-user", "role": "operator"}},
    ],
    ids=["removed", "another token"],
)
def test_a_session_ends_when_its_user_is_removed_or_gets_another_token(
    ann: Browser, configure: Configure, users: dict[str, Any]
) -> None:
    cookie = ann.cookie()
    changed = Browser(configure(users=users))
    changed.take(cookie)
    same = Browser(configure())
    same.take(cookie)

    assert changed.get("/admin/").status_code == 303
    assert same.get("/admin/").status_code == 200


def test_a_session_ends_by_its_time(ann: Browser, store: redis.Redis) -> None:
    (key,) = store.keys("{sitemapd}:session:*")
    store.pexpire(key, 1)
    while store.exists(key):
        time.sleep(0.001)

    assert ann.get("/admin/").status_code == 303


def test_t26_a_viewer_reads_and_may_do_nothing(vic: Browser, held: str, store: redis.Redis) -> None:
    page = vic.get("/admin/").text
    answer = vic.post("/admin/confirm", site="demo", subject=held, urls="10", csrf=vic.csrf())

    assert f"sitemapd confirm {held} --site demo" in page
    assert "Let it shrink" not in page
    assert answer.status_code == 403
    assert store.hexists("{demo}:held", held)


def test_an_operator_acts_and_is_told_and_recorded(
    ann: Browser, held: str, store: redis.Redis
) -> None:
    assert "Let it shrink" in ann.get("/admin/").text
    answer = ann.post("/admin/confirm", site="demo", subject=held, urls="10", csrf=ann.csrf())

    assert answer.status_code == 303
    assert not store.hexists("{demo}:held", held)
    assert "pages/1 may shrink from 100 to 10 pages" in ann.get(answer.location or "").text
    assert outcomes(store)[-1] == (
        "ann", "confirm", "pages/1 may shrink from 100 to 10 pages", True,
    )  # fmt: skip
    assert "pages/1 may shrink" in ann.get("/admin/audit").text


def test_what_has_changed_since_it_was_shown_is_not_done(
    ann: Browser, held: str, store: redis.Redis
) -> None:
    page = f"{HERE}/admin/sites?site=demo&did=1-1"
    form = {"site": "demo", "subject": held, "urls": "11", "csrf": ann.csrf()}
    back = ann.client.post(
        "/admin/confirm", base_url=HERE, data=form, headers={"Origin": HERE, "Referer": page}
    )
    assert re.fullmatch(r"/admin/sites\?site=demo&did=[0-9]+-[0-9]+", back.location or "")
    for site, subject, pages in (
        ("demo", held, "9"),
        ("demo", "pages/2", "10"),
        ("no", held, "10"),
    ):
        answer = ann.post("/admin/confirm", site=site, subject=subject, urls=pages, csrf=ann.csrf())
        assert "Not done" in ann.get(answer.location or "").text
    assert store.hexists("{demo}:held", held)


def test_nobody_elses_outcome_is_shown_as_ones_own(ann: Browser, store: redis.Redis) -> None:
    ident = Audit(store).write("eve", "confirm", "a trick", way="console")

    for did in (ident, "0-1", "x", "9" * 99):
        assert "a trick" not in ann.get(f"/admin/?did={did}").text


@pytest.mark.parametrize(
    "origin", ["https://evil.example", "null", "http://sitemaps.example.com", None]
)
def test_t27_a_form_from_elsewhere_is_refused(
    ann: Browser, held: str, store: redis.Redis, origin: str | None
) -> None:
    form = {"site": "demo", "subject": held, "urls": "10", "csrf": ann.csrf()}

    assert ann.post("/admin/confirm", origin=origin, **form).status_code == 403
    assert ann.post("/admin/logout", origin=origin, csrf=form["csrf"]).status_code == 403
    login = ann.post("/admin/login", origin=origin, user="vic", token=TOKENS["vic"])
    assert login.status_code == 403
    assert store.hexists("{demo}:held", held)


def test_t27_a_form_without_the_token_of_its_session_is_refused(
    ann: Browser, configure: Configure, held: str, store: redis.Redis
) -> None:
    other = Browser(configure())
    other.login("ann")

    for csrf in ("", "x", "é", other.csrf()):
        form = {"site": "demo", "subject": held, "urls": "10", "csrf": csrf}
        assert ann.post("/admin/confirm", **form).status_code == 403
        assert ann.post("/admin/logout", csrf=csrf).status_code == 403
    assert store.hexists("{demo}:held", held)


def test_t27_no_get_changes_anything(
    ann: Browser, held: str, unchanged: Callable[[], Any], store: redis.Redis
) -> None:
    csrf = ann.csrf()
    once = Logins(store).link("ann")
    with unchanged():
        for path in (*PAGES, "/admin/login", "/admin/nothing", f"/admin/login?once={once}"):
            ann.get(path)
        query = f"site=demo&subject={held}&urls=10&csrf={csrf}"
        for path in ("/admin/confirm", "/admin/logout", "/admin/login/once"):
            assert ann.get(f"{path}?{query}").status_code in {404, 405}
    for method in ("PUT", "DELETE", "PATCH", "POST", "OPTIONS"):
        for path in ("/admin/audit", "/admin/"):
            answer = ann.client.open(path, base_url=HERE, method=method)
            assert answer.status_code == 405
            assert "frame-ancestors 'none'" in answer.headers["Content-Security-Policy"]


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
    Audit(store).write(CANARY, CANARY, CANARY, way="cli", site=CANARY, subject=CANARY)

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


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1:8080", "sitemaps.example.com.", ""])
def test_t29_another_host_is_refused_with_and_without_a_session(ann: Browser, host: str) -> None:
    for path in (*PAGES, "/admin/login", "/admin/nothing"):
        answer = ann.client.get(path, base_url=HERE, headers={"Host": host})
        assert answer.status_code == 400
        assert "demo" not in answer.text


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
    store.hset("{demo}:pages:files", "1", "1 1 7 900")
    store.hset("{demo}:sections", "pages", "0")
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
        Audit(store).write("cli:root", "replay", f"number {n}.", way="cli")

    page, seen = ann.get("/admin/audit").text, list[str]()
    while True:
        seen += re.findall(r"number (\d+)\.", page)
        older = re.search(r'href="([^"]+)" rel="next"', page)
        if older is None:
            break
        page = ann.get(html.unescape(older[1])).text
    assert seen == [str(n) for n in reversed(range(120))]


def test_the_audit_log_stays_small_and_so_does_an_entry(store: redis.Redis) -> None:
    audit = Audit(store)
    ident = audit.write("x" * 5_000, "a", "b", way="cli")
    pipe = store.pipeline(transaction=False)
    for _ in range(10_500):
        pipe.xadd("{sitemapd}:audit", {"who": "x"})
    pipe.execute()
    audit.write("last", "a", "b", way="cli")

    assert audit.find(ident) is None
    assert 10_000 <= store.xlen("{sitemapd}:audit") <= 10_200
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
        return re.findall(r'id="site-(s\d+)"', browser.get(f"/admin/?page={page}").text)

    assert shown("") == shown("0") == shown("x") == shown("²") == [f"s{n}" for n in range(50)]
    assert shown("1") == shown("2") == shown("9" * 5_000) == [f"s{n}" for n in range(50, 100)]
    assert store.dbsize() <= 4
