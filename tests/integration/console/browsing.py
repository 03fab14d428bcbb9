"""A browser in the console, and settings for it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import redis
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from shared.config.settings import Settings
from shared.store.operations.audit_log import AuditLog
from webhook.app import create_app

DOMAIN = "sitemaps.example.com"
HERE = f"https://{DOMAIN}"
NAME = "__Secure-sitemapd"
TOKENS = {"ann": "ann-token-1111111111111111", "vic": "vic-token-2222222222222222"}
PAGES = (
    "/admin/", "/admin/sites", "/admin/events", "/admin/queues", "/admin/failed", "/admin/files",
    "/admin/inspector", "/admin/checks", "/admin/workers", "/admin/notifications",
    "/admin/index-status", "/admin/audit",
)  # fmt: skip
CANARY = "<script>alert(1)</script>"
SECRETS = {
    "token": "canary-token-333333333333",
    "source": "canary-source-444444",
    "key": "canary-key-5555",
    "hook": "canary-hook-66666666666",
    "secret": "Y2FuYXJ5" * 5,
}

Configure = Callable[..., Settings]

_CSRF = re.compile(r'name="csrf" value="([^"]+)"')


def settings(redis_url: str, root: Path, **console: Any) -> Settings:
    """With two users and two sites full of secrets."""
    users = {
        "ann": {"token": TOKENS["ann"], "role": "operator"},
        "vic": {"token_sha256": hashlib.sha256(TOKENS["vic"].encode()).hexdigest()},
    }
    site = {
        "base_url": "https://www.example.com", "web_root": root / "a", "robots": "create",
        "secrets": ["whsec_" + SECRETS["secret"]], "tokens": [SECRETS["token"]],
        "source": f"sql:postgresql+psycopg://u:{SECRETS['source']}@h/d",
        "source_key": SECRETS["key"], "source_query": "SELECT loc FROM pages",
        "sections": {"posts": {"split": "month"}},
        "sources": {"ghost": {"secret": SECRETS["hook"]}},
    }  # fmt: skip
    other = {"base_url": "https://b.example", "web_root": root / "b", "tokens": ["t" * 20]}
    return Settings(
        redis_url=redis_url,
        console={"origin": HERE, "users": users} | console,  # type: ignore[arg-type]
        sites={"demo": site, "other": other},  # type: ignore[dict-item]
    )


def with_site(settings: Settings, **options: Any) -> Settings:
    """The same with other options of the first site."""
    sites = {name: site.model_dump() for name, site in settings.sites.items()}
    sites["demo"] |= options
    return Settings(**settings.model_dump() | {"sites": sites})


class Browser:
    """What a browser does with the console: its cookie, and the headers of its forms."""

    def __init__(
        self, settings: Settings, origin: str = HERE, *, client: redis.Redis | None = None
    ) -> None:
        self.origin = origin
        self.client: FlaskClient = create_app(settings, client).test_client()

    def get(self, path: str, **headers: str) -> TestResponse:
        return self.client.get(path, base_url=self.origin, headers=headers)

    def post(self, path: str, *, origin: str | None = HERE, **form: str) -> TestResponse:
        headers = {} if origin is None else {"Origin": origin}
        return self.client.post(path, base_url=self.origin, headers=headers, data=form)

    def login(self, user: str, token: str = "", **form: str) -> TestResponse:
        token = token or TOKENS[user]
        return self.post("/admin/login", origin=self.origin, user=user, token=token, **form)

    def csrf(self) -> str:
        found = _CSRF.search(self.get("/admin/").text)
        assert found is not None
        return found[1]

    def act(self, path: str, **form: str) -> str:
        """Post the form of an action, and read the page that it leads to."""
        answer = self.post(path, csrf=self.csrf(), **form)
        assert answer.status_code == 303, answer.text
        return self.get(answer.location or "").text

    def cookie(self) -> str:
        """The secret of its session."""
        found = self.client.get_cookie(NAME, DOMAIN, "/admin")
        assert found is not None
        return found.value

    def take(self, cookie: str) -> None:
        """Have the session of another browser."""
        self.client.set_cookie(NAME, cookie, domain=DOMAIN, path="/admin")


def outcomes(store: redis.Redis) -> list[tuple[str, str, str, bool]]:
    return [(e.who, e.action, e.outcome, e.done) for e in reversed(AuditLog(store).read())]
