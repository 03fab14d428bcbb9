"""Who may see and do what in the console (RELIABILITY T26, T27, T29), on a real store."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import redis

from deploy.local import login_link
from shared.store.operations.sessions import Sessions
from tests.integration.console.browsing import (
    HERE,
    NAME,
    PAGES,
    TOKENS,
    Browser,
    Configure,
    outcomes,
)


def test_without_users_there_is_nothing(configure: Configure, store: redis.Redis) -> None:
    browser = Browser(configure(users={}))

    for path in (*PAGES, "/admin", "/admin/login", "/admin/static/x.css"):
        answer = browser.get(path)
        assert (answer.status_code, answer.json["code"]) == (404, "not-found")  # type: ignore[index]
    assert browser.login("ann").status_code == 404
    assert not store.keys("{_sitemapd}*")


@pytest.mark.parametrize("path", [*PAGES, "/admin", "/admin/nothing", "/admin/inspector?loc=x%26y"])
def test_t26_without_a_session_every_page_leads_to_the_login(browser: Browser, path: str) -> None:
    answer = browser.get(path)
    there = urlsplit(answer.location or "")

    assert (answer.status_code, there.path) == (303, "/admin/login")
    assert parse_qs(there.query).get("next", ["/admin/"])[0].rstrip("/") == path.rstrip("/")
    assert "demo" not in answer.text
    assert browser.get(path, X_Live="1").status_code == 401


def test_t26_without_a_session_nothing_is_done(
    browser: Browser, held: str, store: redis.Redis
) -> None:
    answer = browser.post("/admin/confirm", site="demo", subject=held, urls="10", csrf="")

    assert (answer.status_code, urlsplit(answer.location or "").path) == (303, "/admin/login")
    assert "demo" not in answer.text
    assert store.hexists("{demo}:held", held)


def test_t26_a_form_sent_after_the_session_leads_to_the_login_and_back_to_its_page(
    browser: Browser, held: str, store: redis.Redis
) -> None:
    form = {"site": "demo", "subject": held, "urls": "10", "csrf": "of-a-former-session"}
    page = f"{HERE}/admin/?site=demo&did=1-1"
    answer = browser.client.post(
        "/admin/confirm", base_url=HERE, data=form, headers={"Origin": HERE, "Referer": page}
    )
    assert "nothing was done" in browser.get(answer.location or "").text
    (after,) = parse_qs(urlsplit(answer.location or "").query)["next"]
    back = browser.get(browser.login("ann", next=after).location or "").text

    assert after == "/admin/?site=demo&undone=1"
    assert "Not done:" in back
    assert "Confirm removals" in back
    assert store.hexists("{demo}:held", held)


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
    (tries,) = store.keys("{_sitemapd}:tries:*")
    assert 0 < store.ttl(tries) <= 60
    assert browser.login("vic").status_code == 303
    link = login_link.make(configure().console, store, HERE, "ann")
    once = parse_qs(urlsplit(link).query)["once"][0]
    assert browser.post("/admin/login/once", once=once).status_code == 303
    refused = [outcome for outcome in outcomes(store) if not outcome[3]]
    assert refused == [
        ("ann", "login", "more than 10 tries within 60 s: refused temporarily", False)
    ]


@pytest.mark.parametrize("before", [["ann"] * 5, ["nobody"] * 12, ["x", "y", "nobody"] * 5])
def test_t5_answers_to_logins_do_not_tell_which_names_exist(
    browser: Browser, before: list[str]
) -> None:
    for name in before:
        browser.login(name, "wrong")
    other = {"ann": "vic", "nobody": "somebody"}

    def answers(name: str) -> list[tuple[int, str, str | None]]:
        said = [browser.login(name, "wrong") for _ in range(12)]
        return [(each.status_code, each.text, each.headers.get("Retry-After")) for each in said]

    assert answers(other["ann"]) == answers(other["nobody"])
    names = ("A" * 5000, "a b", "\0", "ü", "{sitemapd}")
    assert [browser.login(name, "wrong").status_code for name in names] == [401] * 5


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
    assert (again.status_code, "has expired" in again.text) == (401, True)


def test_a_link_of_a_removed_user_leads_nowhere(browser: Browser, store: redis.Redis) -> None:
    once = Sessions(store).link("gone")

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
    keys = store.keys("{_sitemapd}:session:*")
    assert f"{{_sitemapd}}:session:{hashlib.sha256(value.encode()).hexdigest()}".encode() in keys
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
    assert store.keys("{_sitemapd}:session:*")


def test_a_session_ends_with_its_logout(ann: Browser, store: redis.Redis) -> None:
    old = ann.cookie()
    answer = ann.post("/admin/logout", csrf=ann.csrf())

    assert (answer.status_code, answer.location) == (303, "/admin/login")
    assert ann.get("/admin/").status_code == 303
    ann.take(old)
    assert ann.get("/admin/").status_code == 303
    assert not store.keys("{_sitemapd}:session:*")
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
    (key,) = store.keys("{_sitemapd}:session:*")
    store.pexpire(key, 1)
    while store.exists(key):
        time.sleep(0.001)

    assert ann.get("/admin/").status_code == 303


def test_t26_a_viewer_reads_and_may_do_nothing(vic: Browser, held: str, store: redis.Redis) -> None:
    page = vic.get("/admin/?site=demo").text
    answer = vic.post("/admin/confirm", site="demo", subject=held, urls="10", csrf=vic.csrf())

    assert f"sitemapd confirm {held} --site demo" in page
    assert "Confirm removals" not in page
    assert answer.status_code == 403
    assert store.hexists("{demo}:held", held)


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
    once = Sessions(store).link("ann")
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


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1:8080", "sitemaps.example.com.", ""])
def test_t29_another_host_is_refused_with_and_without_a_session(ann: Browser, host: str) -> None:
    for path in (*PAGES, "/admin/login", "/admin/nothing"):
        answer = ann.client.get(path, base_url=HERE, headers={"Host": host})
        assert answer.status_code == 400
        assert "demo" not in answer.text
