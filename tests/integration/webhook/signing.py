"""What schemathesis cannot know of our senders: how they sign, and what NDJSON is made of."""

from __future__ import annotations

import base64
import hmac
import json
import secrets
import time
from typing import Any

import schemathesis
from hypothesis import strategies as st
from requests import PreparedRequest
from requests.auth import AuthBase

from tests.integration.conftest import KEY

EVENT = {"type": "delete", "id": 1}
lines = st.lists(st.sampled_from([EVENT, EVENT | {"id": "x"}]), min_size=1, max_size=5)
ndjson = lines.map(lambda items: "\n".join(map(json.dumps, items)).encode())
for media_type in ("application/x-ndjson", "application/ndjson", "application/jsonl"):
    schemathesis.openapi.media_type(media_type, ndjson)


class Signed(AuthBase):
    """Standard Webhooks headers over the bytes that are sent."""

    def __call__(self, request: PreparedRequest) -> PreparedRequest:
        body = request.body or b""
        content = body.encode() if isinstance(body, str) else body
        given: Any = request.headers.get("webhook-id")
        if given is None:
            given = secrets.token_hex(8)
        ident = given if isinstance(given, bytes) else given.encode("latin-1")
        now = str(int(time.time()))
        mac = hmac.digest(KEY, b".".join((ident, now.encode(), content)), "sha256")
        request.headers["webhook-id"] = ident
        request.headers["webhook-timestamp"] = now
        request.headers["webhook-signature"] = "v1," + base64.b64encode(mac).decode()
        return request


@schemathesis.hook
def before_call(_context: Any, case: Any, kwargs: dict[str, Any]) -> None:
    """Sign every delivery."""
    if case.method.upper() == "POST":
        kwargs["auth"] = Signed()
