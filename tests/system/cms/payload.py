"""Payload from npm on SQLite, with our hooks as printed, driven through its REST and local APIs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import httpx

from tests.system.cms.installing import Node
from tests.system.cms.programs import Program, free_port

PROJECT = Path(__file__).with_name("payload_project")
NODE = (22, 18)
"""Runs TypeScript as it is, so the printed file is not touched."""
POSTS, PRODUCTS = "posts", "products"
WHERE = {POSTS: "/{locale}/blog/{slug}", PRODUCTS: "/shop/{slug}"}
LOCALES = ("en", "de")
_ENVIRONMENT = re.compile(r"(SITEMAPD_\w+)=(\S+)")


class Payload:
    """One project; `home` holds its database, `url` is the address it is reached at."""

    def __init__(self, home: Path, url: str) -> None:
        self.home, self.url = home, url
        self.node = Node(NODE)
        place = self.node.project("payload-3.90.2", PROJECT / "package.json")
        shutil.copytree(PROJECT, home)
        (home / "node_modules").symlink_to(place / "node_modules")
        self.port = free_port()
        self.address = f"127.0.0.1:{self.port}"
        self.log = home / "payload.log"
        self.api = httpx.Client(base_url=url, timeout=60)

    def start(self, client: str, guide: str) -> None:
        """Start it with the printed hooks, and in the environment that the guide prints."""
        (self.home / "sitemapd.ts").write_text(client)
        self.begin(dict(_ENVIRONMENT.findall(guide)))

    def begin(self, environment: dict[str, str]) -> None:
        """Start it with these variables of ours."""
        self.env = {
            **self.node.environment(), "PORT": str(self.port), "NODE_ENV": "development",
            "DATABASE_URL": f"file:{self.home / 'payload.db'}", "NO_COLOR": "1", **environment,
        }  # fmt: skip
        self.program = Program([self.node.program, "server.mjs"], self.home, self.env, self.log)
        self.program.answers(f"{self.url}/api/posts", 300)

    def stop(self) -> None:
        """End the process."""
        self.program.end()

    def close(self) -> None:
        """End it for good."""
        self.api.close()
        self.stop()

    def ask(
        self, method: str, path: str, body: object = None, *, fails: bool = False, **query: object
    ) -> Any:
        """What the REST interface answers."""
        asked = f"/api/{path}{'?' + urlencode(query) if query else ''}"
        reply = self.api.request(method, asked, json=body)
        assert (reply.status_code >= 400) == fails, (method, path, reply.status_code, reply.text)
        return reply.json()

    def local(self, method: str, **said: object) -> Any:
        """Call Payload's own interface, as code of the site does."""
        reply = self.api.post(f"/local/{method}", json=said)
        assert reply.status_code == 200, (method, reply.text)
        return reply.json()

    def public(self) -> set[str]:
        """Every document that is published, in each language in which it has a slug."""
        found: set[str] = set()
        query = {"locale": "all", "limit": 0, "depth": 0}
        for post in self.ask("GET", POSTS, **query)["docs"]:
            if post["_status"] == "published":
                slugs = {code: slug for code, slug in (post["slug"] or {}).items() if slug}
                found |= {f"{self.url}/{code}/blog/{slug}" for code, slug in slugs.items()}
        for product in self.ask("GET", PRODUCTS, **query)["docs"]:
            found.add(f"{self.url}/shop/{product['slug']}")
        return found

    def create(self, slug: str, *, kind: str = POSTS, publish: bool = False) -> int:
        """Add a document; its id."""
        state = "published" if publish else "draft"
        data = {"slug": slug, "title": slug, "_status": state}
        made = self.ask("POST", kind, data, **({} if publish else {"draft": "true"}))
        return int(made["doc"]["id"])

    def save(self, number: int, *, kind: str = POSTS, locale: str = "en", **fields: object) -> None:
        """Save a document as it is in the form; `draft`: beside what is published."""
        query: dict[str, object] = {"locale": locale}
        for name in ("draft", "trash"):
            if fields.pop(name, False):
                query[name] = "true"
        self.ask("PATCH", f"{kind}/{number}", fields, **query)

    def publish(self, number: int, **fields: object) -> None:
        """Save and publish."""
        self.save(number, _status="published", **fields)

    def script(self, slug: str) -> None:
        """Run the script that makes a post and ends."""
        done = subprocess.run(
            [self.node.program, "script.mjs", slug], cwd=self.home, check=False, timeout=120,
            env={**os.environ, **self.env}, stdin=subprocess.DEVNULL, capture_output=True,
            text=True,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
