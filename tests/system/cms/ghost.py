"""Ghost from npm, run by node itself on SQLite, driven through its Admin API."""

from __future__ import annotations

import base64
import hmac
import json
import shutil
import tarfile
import time
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import httpx

from tests.system.cms.installing import Node, installed, run
from tests.system.cms.programs import Program, free_port


class Release(NamedTuple):
    """One version, the least Node.js it runs on, and the database it comes with."""

    version: str
    node: tuple[int, int]
    database: str


FIVE = Release("5.130.6", (20, 11), "sqlite3")
SIX = Release("6.65.0", (22, 23), "better-sqlite3")
EVENTS = (
    *(f"{kind}.{event}" for kind in ("post", "page") for event in (
        "published", "unpublished", "published.edited", "deleted")),
    "tag.added", "tag.edited", "tag.deleted", "site.changed",
)  # fmt: skip
# A foreign front end and its e-mail are none of this; what it would ask of the network neither.
_QUIET = {
    "useUpdateCheck": False, "useGravatar": False, "useRpcPing": False, "useStructuredData": False,
    "useTinfoil": True,
}  # fmt: skip


def _install(release: Release, place: Path) -> None:
    node = Node(release.node)
    packed = f"ghost-{release.version}.tgz"
    run("npm", "pack", "--silent", f"ghost@{release.version}", cwd=place, env=node.environment())
    run("tar", "xzf", packed, cwd=place)
    (place / packed).unlink()
    package = place / "package"
    said = json.loads((package / "package.json").read_text())
    pins = said.pop("resolutions", {}) | said.pop("overrides", {})
    # Written for other package managers in a workspace; of what is optional the database alone
    # is of use, and its own parts come as archives that name each other by version.
    for name in ("devDependencies", "scripts", "nx", "packageManager"):
        said.pop(name, None)
    needs = said["dependencies"]
    needs[release.database] = said.pop("optionalDependencies")[release.database]
    for part in sorted((package / "components").glob("*.tgz")):
        pins[_name(part)] = f"file:components/{part.name}"
    needs |= pins
    said["overrides"] = {name: f"${name}" for name in pins}
    (package / "package.json").write_text(json.dumps(said))
    node.install(package, "--legacy-peer-deps", "--omit=optional")


def _name(archive: Path) -> str:
    with tarfile.open(archive) as members:
        described = members.extractfile("package/package.json")
        assert described is not None
        return str(json.load(described)["name"])


class Ghost:
    """One site; `home` holds its database, `url` is the address it is reached at."""

    def __init__(self, release: Release, home: Path, url: str, hook: str, secret: str) -> None:
        self.release, self.url = release, url
        make = partial(_install, release)
        place = installed(f"ghost-{release.version}", release, make) / "package"
        home.mkdir()
        shutil.copytree(place / "content", home / "content")
        (home / "current").symlink_to(place)  # as its command line lays it out
        port = free_port()
        self.address = f"127.0.0.1:{port}"
        database = {"client": release.database, "connection": {"filename": str(home / "ghost.db")}}
        config = {
            "url": url,
            "server": {"host": "127.0.0.1", "port": port},
            "database": {**database, "useNullAsDefault": True},
            "mail": {"transport": "stub"},
            "paths": {"contentPath": str(home / "content")},
            "logging": {"level": "info", "transports": ["stdout"]},
            "privacy": _QUIET,
            "security": {"staffDeviceVerification": False},
        }
        (home / "config.production.json").write_text(json.dumps(config))
        node = Node(release.node)
        env = {**node.environment(), "NODE_ENV": "production"}
        self.program = Program([node.program, "current/index.js"], home, env, home / "ghost.log")
        self.api = httpx.Client(base_url=f"{url}/ghost/api/admin/", timeout=60)
        self.hook, self.secret = hook, secret
        self.admin_key: tuple[str, str] | None = None

    def set_up(self) -> None:
        """Make the owner, the integration and its webhooks; the front must be there by now."""
        self.program.answers(f"{self.url}/ghost/api/admin/site/", 600)
        person = {"email": "editor@example.com", "password": "a long pass phrase 7"}
        owner = {**person, "name": "Editor", "blogTitle": "Newsroom"}
        self._ask("POST", "authentication/setup/", {"setup": [owner]})
        login = {"username": person["email"], "password": person["password"]}
        headers = {"origin": self.url}
        reply = self.api.post("session/", json=login, headers=headers)
        assert reply.status_code == 201, reply.text
        self.api.headers["origin"] = self.url
        made = self._ask("POST", "integrations/?include=api_keys", {"integrations": [_NAMED]})
        keys = {key["type"]: key for key in made["integrations"][0]["api_keys"]}
        for event in EVENTS:
            hook = {
                "event": event, "name": event, "secret": self.secret,
                "integration_id": made["integrations"][0]["id"],
                # 5.x names the event nowhere: only the test has to know it, not the adapter.
                "target_url": f"{self.hook}?event={event}",
            }  # fmt: skip
            self._ask("POST", "webhooks/", {"webhooks": [hook]})
        self.content_key = keys["content"]["secret"]
        # The key as it is shown in the admin is `id:secret`.
        self.admin_key = keys["admin"]["id"], keys["admin"]["secret"].rpartition(":")[2]
        self.api.cookies.clear()

    def close(self) -> None:
        """End it."""
        self.api.close()
        self.program.end()

    def _token(self, ident: str, key: str) -> str:
        """A JSON Web Token of the integration, as its documentation makes it."""
        now = int(time.time())
        parts = (
            {"alg": "HS256", "typ": "JWT", "kid": ident},
            {"iat": now, "exp": now + 300, "aud": "/admin/"},
        )
        content = ".".join(_encoded(json.dumps(part).encode()) for part in parts)
        mac = hmac.digest(bytes.fromhex(key), content.encode(), "sha256")
        return f"{content}.{_encoded(mac)}"

    def _ask(self, method: str, path: str, body: object = None) -> dict[str, Any]:
        headers = {}
        if self.admin_key is not None:
            headers["authorization"] = f"Ghost {self._token(*self.admin_key)}"
        reply = self.api.request(method, path, json=body, headers=headers)
        assert reply.status_code < 300, (method, path, reply.status_code, reply.text)
        return dict(reply.json()) if reply.content else {}

    def public(self) -> set[str]:
        """Every post, page and tag with posts that the Content API shows to strangers.

        Not those that say that their canonical address is at another site.
        """
        found: set[str] = set()
        for kind in ("posts", "pages", "tags"):
            query = {"key": self.content_key, "limit": "all"}
            if kind == "tags":
                query["include"] = "count.posts"
            reply = httpx.get(f"{self.url}/ghost/api/content/{kind}/", params=query, timeout=60)
            for item in reply.raise_for_status().json()[kind]:
                canonical = item.get("canonical_url") or self.url
                shown = canonical.startswith(self.url)
                if shown and (kind != "tags" or item["count"]["posts"]):
                    found.add(item["url"])
        return found

    def create(self, title: str, kind: str = "posts", **fields: object) -> dict[str, Any]:
        """Add a post or a page; a draft unless `status` says otherwise."""
        item = {"title": title, "lexical": _TEXT, **fields}
        return dict(self._ask("POST", f"{kind}/", {kind: [item]})[kind][0])

    def edit(self, item: dict[str, Any], kind: str = "posts", **fields: object) -> dict[str, Any]:
        """Change a post, page or tag; as it is afterwards."""
        if kind != "tags":
            now = self._ask("GET", f"{kind}/{item['id']}/")[kind][0]
            fields["updated_at"] = now["updated_at"]
        return dict(self._ask("PUT", f"{kind}/{item['id']}/", {kind: [fields]})[kind][0])

    def delete(self, item: dict[str, Any], kind: str = "posts") -> None:
        """Delete a post, page or tag."""
        self._ask("DELETE", f"{kind}/{item['id']}/")

    def bulk_unpublish(self, *items: dict[str, Any]) -> None:
        """Unpublish several posts chosen in the list."""
        self._ask("PUT", f"posts/bulk/?filter={_these(items)}", {"bulk": {"action": "unpublish"}})

    def bulk_delete(self, *items: dict[str, Any]) -> None:
        """Delete several posts chosen in the list."""
        self._ask("DELETE", f"posts/?filter={_these(items)}")

    def tag(self, slug: str) -> dict[str, Any]:
        """A tag as it is."""
        return dict(self._ask("GET", f"tags/slug/{slug}/")["tags"][0])


_WORDS = {"type": "text", "version": 1, "text": "A few words.", "format": 0}
_PARAGRAPH = {"type": "paragraph", "version": 1, "children": [_WORDS]}
_TEXT = json.dumps({"root": {"type": "root", "version": 1, "children": [_PARAGRAPH]}})
_NAMED = {"name": "sitemapd"}


def _these(items: tuple[dict[str, Any], ...]) -> str:
    return f"id:[{','.join(str(item['id']) for item in items)}]"


def _encoded(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()
