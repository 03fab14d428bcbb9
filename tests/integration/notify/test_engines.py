"""What each engine is sent, and what each of its answers leads to (PROTOCOL U3-U7)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

import jwt
import pytest
import redis

from tests.integration.engines import Behaviour, Engine, reply
from tests.integration.notified import KEY, MINUTE, SECRET, TOKEN, Desk, table_of
from tests.integration.rig import BASE
from tests.integration.webmasters import Account
from worker.notify.engine import AnswerVerdict

A, B, GONE = BASE + "a", BASE + "b", BASE + "gone"


@pytest.fixture(scope="module")
def account() -> Account:
    return Account()


Open = Callable[..., Desk]


@pytest.fixture
def opened(store: redis.Redis, tmp_path: Path) -> Iterator[Open]:
    """A desk whose engine `name` shows these behaviours; the engine is its `engine`."""
    servers: list[Engine] = []

    def make(name: str, *script: Behaviour, account: Account | None = None) -> Desk:
        server, path = Engine(*script), tmp_path / "account.json"
        servers.append(server)
        path.write_text(account.json if account else "")
        table, more = table_of(name, server.url, path)
        return Desk(store, tmp_path / "public", {name: table}, **more)

    make.servers = servers  # type: ignore[attr-defined]
    yield make
    for server in servers:
        server.close()


def server_of(opened: Open) -> Engine:
    (server,) = opened.servers  # type: ignore[attr-defined]
    assert isinstance(server, Engine)
    return server


def test_indexnow_gets_host_key_and_all_urls_changed_or_removed(opened: Open) -> None:
    """PROTOCOL U3, U7."""
    desk = opened("indexnow", reply(200))
    desk.publish()

    record = desk.tell(A, GONE)

    (asked,) = server_of(opened).asked
    told = asked.json()
    assert (asked.method, asked.target) == ("POST", "/indexnow")
    assert asked.headers["content-type"] == "application/json; charset=utf-8"
    assert sorted(told.pop("urlList")) == [A, GONE]
    assert told == {"host": "www.example.com", "key": KEY, "keyLocation": f"{BASE}{KEY}.txt"}
    assert record.pages == 2
    assert (desk.rig.root / f"{KEY}.txt").read_text() == KEY


def test_indexnow_gets_10000_urls_a_request_at_most(opened: Open) -> None:
    """PROTOCOL U3: at the exact boundary."""
    desk = opened("indexnow", reply(200))
    desk.rig.site.notify.indexnow.__dict__["daily"] = 30_000

    desk.tell(*(f"{BASE}{n}" for n in range(10_001)))

    assert [len(asked.json()["urlList"]) for asked in server_of(opened).asked] == [10_000, 1]


def test_very_long_urls_are_told_in_several_requests(opened: Open) -> None:
    """Each has five seconds."""
    desk = opened("indexnow", reply(200))
    locs = [f"{BASE}{n:05d}{'x' * 1_900}" for n in range(5_000)]

    desk.tell(*locs)

    asked = server_of(opened).asked
    assert [url for each in asked for url in each.json()["urlList"]] == locs
    assert len(asked) == 3
    assert desk.waiting("indexnow") == 0


def test_bing_gets_the_key_in_the_address_and_500_urls(opened: Open) -> None:
    desk = opened("bing", reply(200, {"d": None}))

    desk.tell(*(f"{BASE}{n}" for n in range(501)))

    first, second = server_of(opened).asked
    assert first.target == f"/SubmitUrlbatch?apikey={SECRET}"
    assert first.json()["siteUrl"] == "https://www.example.com"
    assert [len(asked.json()["urlList"]) for asked in (first, second)] == [500, 1]


def test_yandex_gets_one_url_a_request(opened: Open) -> None:
    desk = opened("yandex", reply(202, {}))
    desk.publish()

    desk.tell(A, GONE)

    asked = server_of(opened).asked
    path = "/v4/user/7/hosts/https%3Awww.example.com%3A443/recrawl/queue"
    assert [each.target for each in asked] == [path, path]
    assert sorted(each.json()["url"] for each in asked) == [A, GONE]
    assert asked[0].headers["authorization"] == f"OAuth {SECRET}"


def test_baidu_gets_pages_that_are_there_a_line_each(opened: Open) -> None:
    said = {"remain": 1, "success": 1, "not_same_site": [B], "not_valid": []}
    desk = opened("baidu", reply(200, said))
    desk.publish()
    desk.change({"type": "upsert", "loc": "b"})

    desk.tell(A, B, GONE)

    (asked,) = server_of(opened).asked
    assert dict(parse_qsl(urlsplit(asked.target).query)) == {
        "site": "https://www.example.com", "token": SECRET,
    }  # fmt: skip
    assert sorted(asked.body.decode().split("\n")) == [A, B]
    assert desk.dead() == {"baidu": [B]}
    assert desk.waiting("baidu") == 0


def test_a_hub_gets_both_feeds(opened: Open) -> None:
    desk = opened("websub", reply(204))
    desk.publish()

    desk.tell(A, GONE)

    asked = server_of(opened).asked
    assert [dict(parse_qsl(each.body.decode())) for each in asked] == [
        {"hub.mode": "publish", "hub.url": BASE + name} for name in ("atom.xml", "rss.xml")
    ]
    assert {each.target for each in asked} == {"/hub"}


def test_a_crawler_gets_the_sitemap_encoded_by_the_protocol(opened: Open) -> None:
    """PROTOCOL U1: `:` is %3A and `/` is %2F."""
    desk = opened("crawler", reply(200))
    desk.publish()

    desk.tell(A)

    (asked,) = server_of(opened).asked
    encoded = "https%3A%2F%2Fwww.example.com%2Fsitemap.xml"
    assert (asked.method, asked.target) == ("GET", f"/ping?sitemap={encoded}&by=us")


def test_search_console_gets_the_sitemap_with_a_token_of_the_account(
    opened: Open, account: Account
) -> None:
    desk = opened("search_console", TOKEN, reply(204), account=account)
    desk.publish()

    desk.tell(A)

    token, submit = server_of(opened).asked
    form = dict(parse_qsl(token.body.decode()))
    url = f"{server_of(opened).url}/token"
    claim = jwt.decode(form["assertion"], account.public, ["RS256"], audience=url)
    assert claim["iss"] == "robot@project.example"
    assert claim["scope"] == "https://www.googleapis.com/auth/webmasters"
    assert claim["exp"] - claim["iat"] == 3600
    assert jwt.get_unverified_header(form["assertion"])["kid"] == "k1"
    assert form["grant_type"] == "urn:ietf:params:oauth:grant-type:jwt-bearer"
    site, sitemap = submit.target.removeprefix("/api/sites/").split("/sitemaps/")
    assert (unquote(site), unquote(sitemap)) == (BASE, BASE + "sitemap.xml")
    assert (submit.method, submit.headers["authorization"]) == ("PUT", f"Bearer {SECRET}")


def test_google_indexing_gets_pages_of_the_sections_it_is_for_alone(
    opened: Open, account: Account
) -> None:
    desk = opened("google_indexing", TOKEN, reply(200, {}), account=account)
    desk.change(
        {"type": "upsert", "loc": "job", "section": "jobs"},
        {"type": "upsert", "loc": "gone", "section": "jobs"},
        {"type": "upsert", "loc": "a"},
    )
    desk.change({"type": "delete", "loc": "gone"})

    desk.tell(BASE + "job", GONE, A, BASE + "never-heard-of")

    _, *asked = server_of(opened).asked
    assert sorted((each.json()["url"], each.json()["type"]) for each in asked) == [
        (GONE, "URL_DELETED"), (BASE + "job", "URL_UPDATED"),
    ]  # fmt: skip
    assert (desk.waiting("google_indexing"), desk.dead()) == (0, {})


@pytest.mark.parametrize("content", ["", "{}", '{"client_email": "a", "private_key": "no key"}'])
def test_credentials_that_are_none_hold_everything_back(
    opened: Open, account: Account, tmp_path: Path, content: str
) -> None:
    """Nothing is lost and nothing is sent, until they are there."""
    desk = opened("search_console", TOKEN, reply(204), account=account)
    desk.publish()
    (tmp_path / "account.json").write_text(content)

    record = desk.tell(A)

    assert (record.outcome, desk.waiting("search_console")) == (AnswerVerdict.HELD, 1)
    assert server_of(opened).asked == []
    (tmp_path / "account.json").write_text(account.json)
    desk.now += 10 * MINUTE
    desk.look()
    assert (desk.waiting("search_console"), desk.breaker("search_console")) == (0, None)


def test_what_an_engine_says_of_our_key_is_kept_from_the_logs(opened: Open) -> None:
    """RELIABILITY T30."""
    desk = opened("bing", reply(400, {"ErrorCode": 3, "Message": f"no such key {SECRET}"}))

    record = desk.tell(A)

    assert record.detail == "no such key ***"


def test_the_address_of_the_token_in_the_credentials_is_not_asked(
    opened: Open, account: Account
) -> None:
    """RELIABILITY T22: whoever writes that file does not choose where requests go."""
    assert "evil.example" in account.json
    desk = opened("search_console", TOKEN, reply(204), account=account)
    desk.publish()

    assert desk.tell(A).outcome == AnswerVerdict.DONE
    assert server_of(opened).asked[0].target == "/token"
