"""Strapi from npm with two content types, on SQLite, driven through its admin's API."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import httpx

from tests.system.cms.installing import Node
from tests.system.cms.programs import Program, free_port

PROJECT = Path(__file__).with_name("strapi_project")
NODE = (20, 0)
EVENTS = ("create", "update", "publish", "unpublish", "delete", "draft-discard")
ARTICLE, PRODUCT = "article", "product"
LOCALES = ("en", "de")


class Strapi:
    """One project; `home` holds its database, `url` is the address it is reached at."""

    def __init__(self, home: Path, url: str) -> None:
        self.url = url
        node = Node(NODE)
        place = node.project("strapi-5.54.0", PROJECT / "package.json")
        shutil.copytree(PROJECT, home)
        (home / "public" / "uploads").mkdir(parents=True)
        (home / "node_modules").symlink_to(place / "node_modules")
        port = free_port()
        self.address = f"127.0.0.1:{port}"
        env = {
            # In production it sends to no private address.
            **node.environment(), "NODE_ENV": "development", "PORT": str(port), "SITE_URL": url,
            "DATABASE_FILE": str(home / "strapi.db"), "STRAPI_TELEMETRY_DISABLED": "true",
        }  # fmt: skip
        strapi = place / "node_modules" / "@strapi" / "strapi" / "bin" / "strapi.js"
        self.program = Program([node.program, strapi, "start"], home, env, home / "strapi.log")
        self.admin = httpx.Client(base_url=url, timeout=60)

    def set_up(self, hook: str, secret: str) -> None:
        """Make the administrator, the second language, a token and the webhook."""
        self.program.answers(f"{self.url}/admin/init", 600)
        person = {"firstname": "Edith", "lastname": "Editor", "email": "editor@example.com"}
        made = self._ask("POST", "/admin/register-admin", {**person, "password": "Pass-phrase-7"})
        self.admin.headers["authorization"] = f"Bearer {made['data']['token']}"
        language = {"code": "de", "name": "Deutsch", "isDefault": False}
        self._ask("POST", "/i18n/locales", language)
        token = {"name": "reader", "description": "", "type": "read-only", "lifespan": None}
        made = self._ask("POST", "/admin/api-tokens", token)
        self.key = str(made["data"]["accessKey"])
        self.reader = {"authorization": f"Bearer {self.key}"}
        webhook = {
            "name": "sitemapd", "url": hook, "headers": {"Authorization": f"Bearer {secret}"},
            "events": [f"entry.{event}" for event in EVENTS],
        }  # fmt: skip
        self.webhook = self._ask("POST", "/admin/webhooks", webhook)["data"]

    def close(self) -> None:
        """End it."""
        self.admin.close()
        self.program.end()

    def _ask(self, method: str, path: str, body: object = None) -> dict[str, Any]:
        reply = self.admin.request(method, path, json=body)
        assert reply.status_code < 300, (method, path, reply.status_code, reply.text)
        return dict(reply.json()) if reply.content else {}

    def public(self) -> set[str]:
        """Every article and product that the REST API shows as published, where a front end has it.

        Strapi has no addresses of its own: `/de/articles/slug`, `/products/slug`.
        """
        found: set[str] = set()
        for locale in LOCALES:
            for item in self._read("articles", {"locale": locale, "status": "published"}):
                found.add(f"{self.url}/{locale}/articles/{item['slug']}")
        for item in self._read("products", {}):
            found.add(f"{self.url}/products/{item['slug']}")
        return found

    def _read(self, plural: str, query: dict[str, str]) -> list[dict[str, Any]]:
        query = {**query, "pagination[pageSize]": "100"}
        path = f"{self.url}/api/{plural}"
        reply = httpx.get(path, params=query, headers=self.reader, timeout=60)
        return list(reply.raise_for_status().json()["data"])

    def _path(self, kind: str, rest: str = "", locale: str = "en") -> str:
        query = f"?locale={locale}" if kind == ARTICLE else ""
        return f"/content-manager/collection-types/api::{kind}.{kind}{rest}{query}"

    def create(self, slug: str, kind: str = ARTICLE, *, publish: bool = False) -> str:
        """Add an entry, and publish it in the same request if asked; the id of its document."""
        path = self._path(kind, "/actions/publish" if publish else "")
        made = self._ask("POST", path, {"title": slug, "slug": slug})
        return str(made["data"]["documentId"])

    def save(self, document: str, kind: str = ARTICLE, locale: str = "en", **fields: str) -> None:
        """Save an entry: of what has drafts, the draft alone."""
        self._ask("PUT", self._path(kind, f"/{document}", locale), fields)

    def publish(self, document: str, locale: str = "en", **fields: str) -> None:
        """Publish the draft with the fields as they are in the form."""
        self._ask("POST", self._path(ARTICLE, f"/{document}/actions/publish", locale), fields)

    def unpublish(self, document: str, locale: str = "en") -> None:
        """Take an entry off the site, its draft stays."""
        self._ask("POST", self._path(ARTICLE, f"/{document}/actions/unpublish", locale), {})

    def discard(self, document: str) -> None:
        """Make the draft what is published."""
        self._ask("POST", self._path(ARTICLE, f"/{document}/actions/discard"), {})

    def delete(self, document: str, kind: str = ARTICLE, locale: str = "en") -> None:
        """Delete an entry in one language, or in all with `*`."""
        self._ask("DELETE", self._path(kind, f"/{document}", locale))

    def bulk(self, action: str, *documents: str) -> None:
        """`Publish`, `Unpublish` or `Delete` several entries chosen in the list."""
        path = self._path(ARTICLE, f"/actions/bulk{action}")
        self._ask("POST", path, {"documentIds": list(documents)})

    def press_test(self) -> None:
        """Press the button that tries the webhook."""
        self._ask("POST", f"/admin/webhooks/{self.webhook['id']}/trigger", {})
