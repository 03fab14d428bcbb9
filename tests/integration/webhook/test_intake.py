"""Every refusal at the door names the item, the member, the rule, and what to send instead."""

from __future__ import annotations

import json
from typing import Any

import pytest
import redis
from flask.testing import FlaskClient

from shared.config.settings import Settings
from shared.events.event import FIELDS
from shared.store.inbox.inbox import Inbox
from tests.integration.conftest import TOKEN, RedisServer, Signer, Unchanged
from webhook.app import create_app

ADDRESS = "/v1/sites/demo/events"
LOC = "https://www.example.com/a"
IMAGE = {"loc": "https://cdn.example.net/1.jpg"}
VIDEO = {
    "thumbnail_loc": "https://cdn.example.net/t.jpg", "title": "T", "description": "D",
    "content_loc": "https://cdn.example.net/v.mp4",
}  # fmt: skip
NEWS = {
    "publication": {"name": "The Example", "language": "en"},
    "publication_date": "2026-11-21", "title": "T",
}  # fmt: skip
LINK = {"hreflang": "en", "href": LOC}

ABSOLUTE = "send an absolute URL that starts with http:// or https://"
A_DATE = "send YYYY-MM-DD or YYYY-MM-DDThh:mm:ssZ"
A_FULL_DATE = "send a full date, YYYY-MM-DD"
HERE = "all URLs here are of https://www.example.com"
A_STRING = "must be a string"
SEND_IT = "is required: send it"


def image(**members: Any) -> dict[str, Any]:
    return {"images": [{**IMAGE, **members}]}


def video(**members: Any) -> dict[str, Any]:
    return {"videos": [{**VIDEO, **members}]}


def news(**members: Any) -> dict[str, Any]:
    return {"news": {**NEWS, **members}}


def link(**members: Any) -> dict[str, Any]:
    return {"alternates": [{**LINK, **members}]}


def audience(name: str, relationship: str | None, listed: list[str]) -> dict[str, Any]:
    member = {"restriction": "countries", "platform": "platforms"}[name]
    return video(**{name: {"relationship": relationship, member: listed}})


Case = tuple[dict[str, Any], str, str, str]

CORE: list[Case] = [
    ({"type": "publish"}, "type", "event-type", "must be one of upsert, delete"),
    ({"prefix": LOC}, "prefix", "event-type", "only a resync has one"),
    ({"type": 7}, "type", "event-type", "must be one of upsert, delete"),
    ({"type": "delete", "loc": None}, "loc", "required", "needs a loc, an id, or both"),
    ({"loc": None}, "loc", "L1", "an upsert needs the absolute URL"),
    ({"loc": ""}, "loc", "L1", ABSOLUTE),
    ({"loc": "/a"}, "loc", "L1", ABSOLUTE),
    ({"loc": "//www.example.com/a"}, "loc", "L1", ABSOLUTE),
    ({"loc": "ftp://www.example.com/a"}, "loc", "L1", ABSOLUTE),
    ({"loc": "https:///a"}, "loc", "L1", "the host is missing"),
    ({"loc": 7}, "loc", "type", A_STRING),
    ({"loc": LOC.ljust(2_048, "x")}, "loc", "L2", "at most 2047"),
    ({"loc": f"{LOC}%zz"}, "loc", "L3", "write a bare one as %25"),
    ({"loc": f"{LOC}/../b"}, "loc", "L3", "resolve the . and .. segments"),
    ({"loc": f"{LOC}\n"}, "loc", "L3", "remove the space around the URL"),
    ({"loc": f"{LOC}\x00"}, "loc", "L3", "remove the character U+0000"),
    ({"loc": "https://www.example.com\\@evil.example/"}, "loc", "L3", "write / or"),
    ({"loc": "https://www\u3002example.com/"}, "loc", "L3", "as ASCII full stops"),
    ({"loc": "https://user@www.example.com/"}, "loc", "L4", "remove the user name"),
    ({"loc": "http://www.example.com/a"}, "loc", "L5", HERE),
    ({"loc": "https://example.com/a"}, "loc", "L5", HERE),
    ({"loc": "https://www.example.com:8443/a"}, "loc", "L5", HERE),
    ({"loc": "https://www.example.com:0/"}, "loc", "L5", "ports run from 1 to 65535"),
    ({"id": ""}, "id", "length", "must have 1 to 512 characters"),
    ({"id": "x" * 513}, "id", "length", "must have 1 to 512 characters"),
    ({"id": [1]}, "id", "type", "must be a string or an integer"),
    ({"section": "nowhere"}, "section", "section", "configured: news, pages, posts"),
    ({"section": 7}, "section", "type", A_STRING),
    ({"section": "news"}, "news", "W1", "needs its news"),
    ({"version": -1}, "version", "version", "a W3C datetime or milliseconds since 1970"),
    ({"version": "yesterday"}, "version", "M1", A_DATE),
    ({"lastmod": "11/09/2025"}, "lastmod", "M1", A_DATE),
    ({"lastmod": "2026-02-31"}, "lastmod", "M1", "there is no such day"),
    ({"lastmod": "2026-11-21T10:00"}, "lastmod", "M1", "add the zone"),
    ({"lastmod": "2026-11-21T10:00:00+0000"}, "lastmod", "M1", "with a colon, +hh:mm"),
    ({"lastmod": 7}, "lastmod", "type", A_STRING),
    ({"changefreq": "Daily"}, "changefreq", "M8", "must be one of always, daily"),
    ({"priority": 1.1}, "priority", "M8", "must be a decimal from 0.0 to 1.0"),
    ({"priority": True}, "priority", "M8", "must be a decimal from 0.0 to 1.0"),
    ({"noindex": "yes"}, "noindex", "type", "must be true or false"),
    ({"canonical": "/a"}, "canonical", "L1", "must be an absolute URL, or left out"),
    ({"colour": "red"}, "colour", "unknown-field", "known: type, loc, id"),
]

LANGUAGES: list[Case] = [
    ({"alternates": {}}, "alternates", "type", "must be an array of {hreflang, href}"),
    ({"alternates": ["en"]}, "alternates[0]", "type", "must be an object {hreflang, href}"),
    ({"alternates": [LINK] * 1_001}, "alternates", "length", "at most 1000"),
    (link(rel="x"), "alternates[0].rel", "unknown-field", "known: hreflang, href"),
    (link(href=None), "alternates[0].href", "H1", "is required, and a string"),
    (link(href="/a"), "alternates[0].href", "L1", ABSOLUTE),
    (link(hreflang="en_US"), "alternates[0].hreflang", "H4", "write hyphens: en-US"),
    (link(hreflang="gr"), "alternates[0].hreflang", "H4", "write el"),
    (link(hreflang="en-UK"), "alternates[0].hreflang", "H4", "write en-GB"),
    (link(hreflang="es-419"), "alternates[0].hreflang", "H4", "name each country, as es-MX"),
    (link(hreflang="AT"), "alternates[0].hreflang", "H4", "put a language first, en-AT"),
    ({"alternates": [LINK, {**LINK, "hreflang": "EN"}]}, "alternates[1].hreflang", "H5",
     "is given twice: one URL each"),
    ({"group": "g"}, "lang", "H1", "a page of a group needs its language, as en"),
    ({"group": 7.5, "lang": "en"}, "group", "type", "must be a string or an integer"),
    ({"group": "x" * 513, "lang": "en"}, "group", "length", "must have 1 to 512 characters"),
    ({"group": "g", "lang": "en", "alternates": [LINK]}, "group", "H2", "excludes alternates"),
    ({"lang": "gr"}, "lang", "H4", "write el"),
    ({"lang": ["en", "en_GB"]}, "lang[1]", "H4", "write hyphens: en-GB"),
    ({"lang": ["en", 7]}, "lang[1]", "type", "must be a code as en, or an array of them"),
    ({"lang": ["en"] * 33}, "lang", "length", "at most 32"),
]  # fmt: skip

IMAGES: list[Case] = [
    ({"images": {}}, "images", "type", "must be an array"),
    ({"images": [7]}, "images[0]", "type", "must be an object with loc"),
    ({"images": [IMAGE] * 1_001}, "images", "I1", "at most 1000"),
    ({"images": [IMAGE, {}]}, "images[1].loc", "I1", SEND_IT),
    (image(loc="/1.jpg"), "images[0].loc", "L1", ABSOLUTE),
    (image(loc="data:image/png;base64,AA"), "images[0].loc", "L1", ABSOLUTE),
    (image(title=""), "images[0].title", "I2", "is empty: send text"),
    (image(alt="x"), "images[0].alt", "unknown-field", "known: loc, caption"),
]

VIDEOS: list[Case] = [
    ({"videos": "x"}, "videos", "type", "must be an array"),
    ({"videos": [VIDEO] * 1_001}, "videos", "V11", "at most 1000"),
    (video(thumbnail_loc=None), "videos[0].thumbnail_loc", "V1", SEND_IT),
    (video(title=None), "videos[0].title", "V1", SEND_IT),
    (video(description=None), "videos[0].description", "V1", SEND_IT),
    (video(content_loc=None), "videos[0]", "V1", "give content_loc, or player_loc, or both"),
    (video(title=" \x00"), "videos[0].title", "V3", "is empty: send text"),
    (video(title="x" * 101), "videos[0].title", "V3", "at most 100"),
    (video(description="x" * 2_049), "videos[0].description", "V3", "at most 2048"),
    (video(uploader="x" * 256), "videos[0].uploader.name", "V3", "at most 255"),
    (video(uploader={"name": "U", "info": "https://other.example/"}),
     "videos[0].uploader.info", "V3", "must be on the domain of the page, www.example.com"),
    (video(duration=0), "videos[0].duration", "V4", "from 1 to 28800"),
    (video(duration=28_801), "videos[0].duration", "V4", "from 1 to 28800"),
    (video(rating=5.1), "videos[0].rating", "V5", "must be a decimal from 0 to 5, as 4.5"),
    (video(view_count=-1), "videos[0].view_count", "V5", "must be a whole number from 0"),
    (video(live="maybe"), "videos[0].live", "V5", "must be true or false"),
    (video(expiration_date="soon"), "videos[0].expiration_date", "M1", A_DATE),
    (video(publication_date="2026"), "videos[0].publication_date", "M1", A_FULL_DATE),
    (audience("restriction", None, ["DE"]), "videos[0].restriction.relationship", "V7", SEND_IT),
    (audience("restriction", "allow", ["UK"]), "videos[0].restriction.countries", "V7",
     "the United Kingdom is GB"),
    (audience("restriction", "allow", []), "videos[0].restriction.countries", "V7",
     "is empty: name at least one"),
    (audience("platform", "deny", ["radio"]), "videos[0].platform.platforms", "V7",
     "must be one of web, mobile, tv"),
    (video(content_loc=LOC), "videos[0].content_loc", "V8", "give that of the video"),
    (video(player_loc=LOC), "videos[0].player_loc", "V8", "give that of the video"),
    (video(content_loc="rtmp://c.example/v"), "videos[0].content_loc", "L1", "or ftp://"),
    (video(tags=["x"] * 33), "videos[0].tags", "V2", "at most 32"),
    (video(category="x" * 257), "videos[0].category", "V9", "at most 256"),
    (video(price=[{"value": 1}]), "videos[0].price[0]", "V9", "needs its currency"),
    (video(size=1), "videos[0].size", "unknown-field", "known: thumbnail_loc, title"),
]  # fmt: skip

ARTICLES: list[Case] = [
    ({"news": []}, "news", "type", "must be an object with publication"),
    (news(title=None), "news.title", "W1", SEND_IT),
    (news(title="\ufffe"), "news.title", "W1", "is empty: send text"),
    (news(publication=None), "news.publication", "W1", SEND_IT),
    (news(publication={"language": "en"}), "news.publication.name", "W1", SEND_IT),
    (news(publication={"name": "N"}), "news.publication.language", "W1", SEND_IT),
    (news(publication={"name": "N", "language": "en-US"}), "news.publication.language", "W6",
     "write the language alone: en"),
    (news(publication_date=None), "news.publication_date", "W1", SEND_IT),
    (news(publication_date="2026"), "news.publication_date", "M1", A_FULL_DATE),
    (news(access="free"), "news.access", "W9", "must be one of Subscription, Registration"),
    (news(genres=["Gossip"]), "news.genres", "W9", "must be one of PressRelease"),
    (news(stock_tickers=["AMAT"]), "news.stock_tickers", "W9", "EXCHANGE:SYMBOL"),
    (news(author="x"), "news.author", "unknown-field", "known: publication"),
]  # fmt: skip

FEEDS: list[Case] = [
    ({"published": "2026"}, "published", "M1", A_FULL_DATE),
    ({"published": 7}, "published", "type", A_STRING),
    ({"title": ""}, "title", "length", "is empty: send text"),
    ({"title": "x" * 501}, "title", "length", "at most 500"),
    ({"title": ["x"]}, "title", "type", A_STRING),
    ({"description": "x" * 1_001}, "description", "length", "at most 1000"),
    ({"publish_at": "tomorrow"}, "publish_at", "M1", A_DATE),
    ({"expires": 7}, "expires", "type", A_STRING),
    ({"status": "gone"}, "status", "status", ""),
    ({"redirect_to": "/b"}, "redirect_to", "L1", ""),
    ({"publish_at": "2027-01-02", "expires": "2027-01-01"}, "expires", "order", "must be later"),
]

CASES = [*CORE, *LANGUAGES, *IMAGES, *VIDEOS, *ARTICLES, *FEEDS]


@pytest.fixture(scope="module")
def door(
    redis_server: RedisServer, secret: str, tmp_path_factory: pytest.TempPathFactory
) -> FlaskClient:
    """The application for one site that has a section for news and publishes everything."""
    site = {
        "base_url": "https://www.example.com", "secrets": [secret], "tokens": [TOKEN],
        "web_root": tmp_path_factory.mktemp("door"),
        "sections": {"posts": {}, "news": {"news": True}},
    }  # fmt: skip
    return create_app(
        Settings(redis_url=redis_server.url_of("web"), sites={"demo": site})
    ).test_client()  # type: ignore[dict-item]  # what TOML gives


@pytest.mark.parametrize(
    ("members", "field", "rule", "remedy"), CASES,
    ids=[f"{field} {rule} {n}" for n, (_, field, rule, _) in enumerate(CASES)],
)  # fmt: skip
def test_a_refusal_names_item_member_rule_and_remedy(
    door: FlaskClient, signed: Signer, unchanged: Unchanged,
    members: dict[str, Any], field: str, rule: str, remedy: str,
) -> None:  # fmt: skip
    """RELIABILITY T10: of a batch with one bad item, none is taken."""
    good = {"type": "upsert", "loc": LOC}
    body = json.dumps([good, good | members, good]).encode()
    with unchanged():
        response = door.post(ADDRESS, data=body, headers=signed(body))

    assert (response.status_code, response.content_type) == (422, "application/problem+json")
    (error,) = response.get_json()["errors"]
    assert (error["item"], error["field"]) == (1, field)
    assert error["rule"].removeprefix("PROTOCOL ") == rule
    assert remedy in error["detail"]


def test_every_member_has_a_refusal_here() -> None:
    """What is listed above leaves no member of an event out."""
    named = {field.split(".")[0].split("[")[0] for _, field, _, _ in CASES}

    assert named == {*FIELDS, "colour"}


@pytest.mark.parametrize(
    ("sent", "stored"),
    [
        ({"loc": "HTTPS://WWW.EXAMPLE.COM:443/a"}, f'"loc":"{LOC}"'),
        ({"loc": f"{LOC}/\u00fc b?q=\u65e5#top"}, f'"loc":"{LOC}/%C3%BC%20b?q=%E6%97%A5"'),
        ({"loc": f"{LOC}%c3%bc"}, f'"loc":"{LOC}%C3%BC"'),
        ({"loc": f'{LOC}"><&'}, f'"loc":"{LOC}%22%3E%3C&"'),
        (image(loc="https://b\u00fccher.example/\u00e9#x"), "https://xn--bcher-kva.example/%C3%A9"),
        (link(href="HTTPS://B\u00dcCHER.example:443"), "https://xn--bcher-kva.example/"),
        (video(player_loc="https://c.example/\u00e9?a b"), "https://c.example/%C3%A9?a%20b"),
        (video(content_loc="FTP://c.example:21/v"), "ftp://c.example/v"),
    ],
)
def test_an_address_is_stored_as_it_was_rebuilt(
    door: FlaskClient, signed: Signer, store: redis.Redis, sent: dict[str, Any], stored: str
) -> None:
    """RELIABILITY T16, PROTOCOL L3 to L5: never as it was sent."""
    body = json.dumps({"type": "upsert", "loc": LOC, **sent}).encode()
    response = door.post(ADDRESS, data=body, headers=signed(body))

    ((event, *_),) = [Inbox(store, "demo").read("test", 10)]
    assert response.status_code == 202
    assert stored in event.payload.decode()
    assert event.payload.isascii()
