"""Any request has an answer of the closed set, and none of ours is a 5xx (DESIGN 8.7)."""

from __future__ import annotations

import json
from io import BytesIO

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shared.events import Event
from shared.inbox import Inbox

LOC = "https://www.example.com/a"
ADDRESS = "/v1/sites/demo/events"
TOKEN = "a-token-of-the-site"
NAMES = (
    "Host", "Content-Type", "Content-Length", "Content-Encoding", "Transfer-Encoding",
    "Authorization", "webhook-id", "webhook-timestamp", "webhook-signature", "Cookie", "Range",
    "Expect", "ce-specversion", "ce-id", "ce-source", "ce-type", "X-Ghost-Signature",
    "X-Forwarded-For", "X-Forwarded-Host", "If-None-Match", "X-HTTP-Method-Override",
)  # fmt: skip
HOOKS = tuple(f"/v1/sites/demo/hooks/{name}" for name in ("wordpress", "ghost/", "prismic", "x"))
PATHS = (
    ADDRESS, *HOOKS, "/v1/sites/demo", "/v1/sites/demo/entries", "/readyz", "/openapi.json", "/",
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
