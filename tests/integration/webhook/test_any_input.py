"""Any request has an answer of the closed set, and none of ours is a 5xx (DESIGN 8.7)."""

from __future__ import annotations

import json
from io import BytesIO
from itertools import count

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from lxml import etree

from shared.config.settings import Settings
from shared.events.event import Event
from shared.sitemap import fragments
from shared.sitemap.entry import Entry
from shared.store.inbox.inbox import Inbox
from tests.integration.rig import SCHEMA
from tests.unit.extensions import document
from webhook.app import create_app

LOC = "https://www.example.com/a"
ADDRESS = "/v1/sites/demo/events"
TOKEN = "a-token-of-the-site"
NAMES = (
    "Host", "Content-Type", "Content-Length", "Content-Encoding", "Transfer-Encoding",
    "Authorization", "webhook-id", "webhook-timestamp", "webhook-signature", "Cookie", "Range",
    "Expect", "ce-specversion", "ce-id", "ce-source", "ce-type", "X-Ghost-Signature",
    "X-Forwarded-For", "X-Forwarded-Host", "If-None-Match", "X-HTTP-Method-Override",
)  # fmt: skip
HOOKS = tuple(
    f"/v1/sites/demo/hooks/{name}" for name in ("wordpress", "ghost/", "prismic", "websub", "x")
)
PATHS = (
    ADDRESS, *HOOKS, "/v1/sites/demo", "/v1/sites/demo/entries", "/v1/sites/demo/listed",
    "/readyz", "/openapi.json", "/",
)  # fmt: skip
VALUES = st.one_of(
    st.sampled_from(
        [
            "application/json",
            "application/cloudevents+json",
            f"Bearer {TOKEN}",
            "v1,AAAA",
            "gzip",
            "1",
            "chunked",
        ]
    ),
    st.text(st.characters(max_codepoint=255, exclude_characters="\r\n"), max_size=60),
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=10), inner),
    max_leaves=10,
)
EVENTS = st.fixed_dictionaries(
    {"type": st.sampled_from(["upsert", "delete"]) | JSON, "loc": st.just(LOC) | JSON},
    optional={
        name: JSON | st.text(max_size=20)
        for name in ("id", "version", "lastmod", "priority", "section", "noindex", "canonical")
    },
)
BODIES = st.binary(max_size=200) | (EVENTS | st.lists(EVENTS, max_size=3) | JSON).map(
    lambda value: json.dumps(value).encode()
)
MARKED = st.sampled_from(
    ["x", "</url>", "]]>", "\x00", "\ufffe", "\U0010ffff", "\u202e", "e\u0301", "&"]
)
ODD = st.characters(categories=["Cc", "Cs", "Cn", "Zs", "Sm"])
TEXTS = st.text(max_size=30) | st.lists(MARKED | ODD, max_size=8).map("".join)
FREE = (
    "id", "title", "images.0.title", "videos.0.title", "videos.0.description", "videos.0.tags.0",
    "videos.0.uploader.name", "news.title", "news.publication.name", "news.keywords",
)  # fmt: skip
STRICT = (
    "loc", "canonical", "group", "lang", "published", "lastmod", "changefreq", "section",
    "images.0.loc", "videos.0.thumbnail_loc", "videos.0.content_loc", "videos.0.uploader.info",
    "videos.0.category", "videos.0.publication_date", "videos.0.restriction.countries",
    "news.publication.language", "news.publication_date", "news.stock_tickers",
    "alternates.0.href", "alternates.0.hreflang",
)  # fmt: skip
DELIVERIES = map("t{}".format, count())
CLOSED = {200, 202, 400, 401, 404, 405, 409, 411, 413, 415, 422}


class TestAnyInput:
    @settings(
        max_examples=400,
        deadline=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture],
    )
    @given(
        method=st.sampled_from(["POST", "POST", "POST", "GET", "HEAD", "PUT", "BREW"]),
        path=st.sampled_from(PATHS) | st.text(max_size=20).map("/v1/sites/".__add__),
        query=st.binary(max_size=20),
        headers=st.dictionaries(st.sampled_from(NAMES), VALUES, max_size=5),
        body=BODIES,
        sign=st.booleans(),
    )
    def test_any_request_has_an_answer_of_the_closed_set(
        self, web, signed, method, path, query, headers, body, sign
    ):
        headers = (signed(body, ident=f"m{hash(body)}") if sign else {}) | headers
        environ = {f"HTTP_{n.upper().replace('-', '_')}": value for n, value in headers.items()}
        environ["CONTENT_TYPE"] = environ.pop("HTTP_CONTENT_TYPE", "")
        environ["CONTENT_LENGTH"] = environ.pop("HTTP_CONTENT_LENGTH", str(len(body)))
        # Straight into the environment: the test client would refuse half of this by itself.
        response = web.open(
            environ_overrides={
                **environ,
                "REQUEST_METHOD": method,
                "PATH_INFO": path.encode().decode("latin-1"),
                "QUERY_STRING": query.decode("latin-1"),
                "wsgi.input": BytesIO(body),
            }
        )

        assert response.status_code in CLOSED
        kind = "application/json" if response.status_code < 400 else "application/problem+json"
        assert kind == response.content_type
        assert method == "HEAD" or isinstance(response.json, dict)

    @settings(
        max_examples=300,
        deadline=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture],
    )
    @given(body=BODIES.filter(bool), ndjson=st.booleans())
    def test_any_signed_body_is_stored_or_refused(self, web, store, signed, body, ndjson):
        kind = {"Content-Type": "application/jsonl"} if ndjson else {}
        before = store.xlen("{demo}:inbox")
        headers = signed(body, ident=f"m{hash((body, ndjson, before))}") | kind
        response = web.post(ADDRESS, data=body, headers=headers)

        assert response.status_code in {202, 200, 400, 409, 422}
        taken = response.json["accepted"] if response.status_code == 202 else 0
        assert before + taken == store.xlen("{demo}:inbox")
        for stored_event in Inbox(store, "demo").read("test", 10):
            Event.load(stored_event.payload)

    @settings(
        max_examples=300,
        deadline=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture],
    )
    @given(
        texts=st.dictionaries(st.sampled_from(FREE), TEXTS, min_size=1, max_size=4)
        | st.dictionaries(st.sampled_from(FREE + STRICT), TEXTS, min_size=1, max_size=2),
        after=st.booleans(),
    )
    def test_any_text_in_any_member_is_valid_xml_or_named_in_a_422(
        self, newsroom, store, signed, texts, after
    ):
        item = full_event()
        for path, text in texts.items():
            put(item, path, text, after=after)
        body = json.dumps([item]).encode()
        store.delete("{demo}:inbox")
        response = newsroom.post(ADDRESS, data=body, headers=signed(body, ident=next(DELIVERIES)))

        if any("\ud800" <= character <= "\udfff" for text in texts.values() for character in text):
            assert (response.status_code, response.json["code"]) == (400, "json")
        elif response.status_code == 422:
            named = {
                error["field"].split(".")[0].split("[")[0] for error in response.json["errors"]
            }
            assert named & {path.split(".")[0] for path in texts}
        else:
            assert response.status_code == 202
            ((stored, *_),) = [Inbox(store, "demo").read("test", 10)]
            event = Event.load(stored.payload)
            entry = Entry(
                event.loc, event.lastmod, event.changefreq, event.priority, event.images,
                event.videos, event.news, event.alternates,
            )  # fmt: skip
            SCHEMA["urlset"].assertValid(etree.fromstring(document(entry)))
            assert fragments.parse(fragments.render(entry)) == entry


def full_event():
    """An upsert with a text in every place of FREE and STRICT."""
    video = {
        "thumbnail_loc": "https://c.example/t", "title": "T", "description": "D",
        "content_loc": "https://c.example/v", "tags": ["t"], "category": "C",
        "uploader": {"name": "U", "info": f"{LOC}/u"}, "publication_date": "2026-11-21",
        "restriction": {"relationship": "allow", "countries": "DE"},
    }  # fmt: skip
    news = {
        "publication": {"name": "N", "language": "en"}, "publication_date": "2026-11-21",
        "title": "T", "keywords": "K", "stock_tickers": "A:B",
    }  # fmt: skip
    return {
        "type": "upsert", "loc": LOC, "id": "1", "canonical": LOC, "title": "T",
        "published": "2026-11-21", "lastmod": "2026-11-21", "changefreq": "daily",
        "section": "pages", "images": [{"loc": f"{LOC}.png", "title": "T", "caption": "C"}],
        "videos": [video], "news": news, "alternates": [{"hreflang": "en", "href": LOC}],
    }  # fmt: skip


def put(item, path, text, *, after):
    """Put `text` in the place of the one at `path`, or behind it."""
    *steps, last = [int(step) if step.isdigit() else step for step in path.split(".")]
    for step in steps:
        item = item[step]
    item[last] = (item.get(last, "") if after and isinstance(item, dict) else "") + text


@pytest.fixture(scope="module")
def newsroom(redis_server, secret, tmp_path_factory):
    """The application for one site that has a section for news."""
    site = {
        "base_url": "https://www.example.com", "secrets": [secret], "tokens": [TOKEN],
        "web_root": tmp_path_factory.mktemp("web"), "sections": {"news": {"news": True}},
    }  # fmt: skip
    return create_app(
        Settings(redis_url=redis_server.url_of("web"), sites={"demo": site})
    ).test_client()
