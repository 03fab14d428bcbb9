"""Directus from npm on SQLite, driven through its REST API; its flows are made by our guide."""

from __future__ import annotations

import json
import os
import re
import subprocess
from functools import partial
from pathlib import Path
from typing import Any

import httpx

from tests.system.cms.installing import Node, installed
from tests.system.cms.programs import Program, free_port

RELEASES = ("11.3.5", "11.16.1")
NODE = (22, 0)
TOKEN = "admin-token-only-for-these-tests"
COMPILED = ("isolated-vm", "sqlite3", "argon2")
ARTICLES, PRODUCTS, NOTES = "articles", "products", "notes"
WHERE = {ARTICLES: "/blog/{slug}", PRODUCTS: "/shop/{slug}", NOTES: "/notes/{id}"}
_STAMPS = {"date_created": "date-created", "date_updated": "date-updated"}
_LABEL = re.compile(r"^ {3}(?=.{12} )(?P<name>\S+(?: \S+)?) +(?P<value>(?<=^.{16})\S.*)$")
_OPERATION = re.compile(r"^\d\. Operation (?P<name>.+?)(?:, Key {2}(?P<key>\w+))?$")
_KINDS = {"Run Script": "exec", "Read Data": "item-read", "Webhook / Request URL": "request"}


def _install(release: str, place: Path) -> None:
    package = {
        "private": True, "dependencies": {"directus": release},
        "allowScripts": dict.fromkeys(COMPILED, True),
    }  # fmt: skip
    (place / "package.json").write_text(json.dumps(package))
    Node(NODE).install(place)


class Directus:
    """One project; `home` holds its database, `url` is the address it is reached at."""

    def __init__(self, release: str, home: Path, url: str) -> None:
        self.url = url
        make = partial(_install, release)
        place = installed(f"directus-{release}", release, make)
        home.mkdir()
        port = free_port()
        self.address = f"127.0.0.1:{port}"
        node = Node(NODE)
        env = {
            **node.environment(), "DB_CLIENT": "sqlite3", "DB_FILENAME": str(home / "directus.db"),
            "SECRET": TOKEN, "ADMIN_EMAIL": "editor@example.com", "ADMIN_PASSWORD": "Pass-phrase-7",
            "ADMIN_TOKEN": TOKEN, "HOST": "127.0.0.1", "PORT": str(port), "PUBLIC_URL": url,
            "TELEMETRY": "false", "MAX_PAYLOAD_SIZE": "10mb",
            "PRESSURE_LIMITER_ENABLED": "false",  # it answers 503 where the machine is busy
            "IMPORT_IP_DENY_LIST": "",  # as the guide says: by default it sends to no loopback
        }  # fmt: skip
        cli = place / "node_modules" / "directus" / "cli.js"
        made = subprocess.run(
            [node.program, cli, "bootstrap"], cwd=home, env={**os.environ, **env}, check=False,
            timeout=600, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        )  # fmt: skip
        assert made.returncode == 0, made.stdout + made.stderr
        self.program = Program([node.program, cli, "start"], home, env, home / "directus.log")
        headers = {"authorization": f"Bearer {TOKEN}"}
        self.api = httpx.Client(base_url=url, headers=headers, timeout=60)

    def set_up(self, guide: str) -> None:
        """Make the collections, and for those with other fields a flow of their own each."""
        self.program.answers(f"{self.url}/server/ping", 300)
        number = _field("id", "integer", {"is_primary_key": True, "has_auto_increment": True})
        status = _field("status", schema={"default_value": "draft"})
        dates = [_field(name, "timestamp", special=[kind]) for name, kind in _STAMPS.items()]
        slug, body = _field("slug"), _field("body", "text")
        self._collection(ARTICLES, number, status, slug, body, *dates)
        self._collection(PRODUCTS, number, slug)
        self._collection(NOTES, _field("code", schema={"is_primary_key": True}), status, body)
        self.flow(guide, ARTICLES)
        dated = '"status", "slug", "date_created", "date_updated"'
        assert dated in guide
        self.flow(guide.replace(dated, '"slug"'), PRODUCTS)
        by_code = guide.replace(dated, '"status"').replace('{"filter": {"id"', '{"filter": {"code"')
        self.flow(by_code.replace('"limit"', '"alias": {"id": "code"}, "limit"', 1), NOTES)

    def close(self) -> None:
        """End it."""
        self.api.close()
        self.program.end()

    def ask(self, method: str, path: str, body: object = None) -> Any:
        """What the API answers."""
        reply = self.api.request(method, path, json=body)
        assert reply.status_code < 300, (method, path, reply.status_code, reply.text)
        return reply.json()["data"] if reply.content else None

    def _collection(self, name: str, *fields: dict[str, Any]) -> None:
        made = {"collection": name, "meta": {}, "schema": {}, "fields": fields}
        self.ask("POST", "/collections", made)

    def flow(self, guide: str, *collections: str) -> str:
        """Click together what `sitemapd connect directus` printed, in its words; the flow's id."""
        trigger, *operations = _steps(guide)
        assert trigger["Trigger"] == "Event Hook", trigger
        assert trigger["Type"] == "Action (Non-Blocking)", trigger
        options = {
            "type": "action", "scope": trigger["Scope"].split(", "), "collections": collections
        }  # fmt: skip
        flow = self.ask("POST", "/flows", {
            "name": "sitemapd", "status": "active", "trigger": "event", "accountability": None,
            "options": options,
        })["id"]  # fmt: skip
        following = None
        for place, said in reversed([*enumerate(operations)]):
            kind = _KINDS[said["Operation"]]
            made = self.ask("POST", "/operations", {
                "flow": flow, "name": said["Operation"], "key": said["Key"], "type": kind,
                "position_x": 19 * (place + 1), "position_y": 1, "options": _options(kind, said),
                "resolve": following, "reject": following if "both its paths" in said else None,
            })  # fmt: skip
            following = made["id"]
        self.ask("PATCH", f"/flows/{flow}", {"operation": following})
        return str(flow)

    def public(self) -> set[str]:
        """Every item that is public: whose status is published, or that has none."""
        return {
            self.url + WHERE[collection].format(**item, **({"id": item["code"]} if code else {}))
            for collection, code in ((ARTICLES, False), (PRODUCTS, False), (NOTES, True))
            for item in self.ask("GET", f"/items/{collection}?limit=-1")
            if item.get("status", "published") == "published"
        }

    def create(self, collection: str, *items: dict[str, str]) -> list[Any]:
        """Add items, in one request; their keys."""
        made = self.ask("POST", f"/items/{collection}", [*items])
        return [item.get("id", item.get("code")) for item in made]

    def save(self, collection: str, *keys: object, **fields: object) -> None:
        """Save one item, or several that were chosen in the list."""
        if len(keys) == 1:
            self.ask("PATCH", f"/items/{collection}/{keys[0]}", fields)
        else:
            self.ask("PATCH", f"/items/{collection}", {"keys": keys, "data": fields})

    def delete(self, collection: str, *keys: object) -> None:
        """Delete one item, or several that were chosen in the list."""
        if len(keys) == 1:
            self.ask("DELETE", f"/items/{collection}/{keys[0]}")
        else:
            self.ask("DELETE", f"/items/{collection}", keys)


def _field(
    name: str, kind: str = "string", schema: dict[str, Any] | None = None, **meta: object
) -> dict[str, Any]:
    return {"field": name, "type": kind, "schema": schema or {}, "meta": meta}


def _steps(guide: str) -> list[dict[str, str]]:
    """The trigger and the operations of the printed steps, as label and value of their forms."""
    steps: list[dict[str, str]] = []
    last = ""
    for line in guide.splitlines():
        if found := _OPERATION.match(line):
            steps.append({"Operation": found["name"], "Key": found["key"] or "request"})
        elif line.startswith("1. "):
            steps.append({"Trigger": _between(line, "Trigger  ", ",")})
            steps[0]["Type"] = _between(line, "Type  ", ",")
        elif "both its paths" in line:
            steps[-1]["both its paths"] = line
        elif found := _LABEL.match(line):
            last = found["name"]
            steps[-1][last] = found["value"]
        elif "Scope  " in line:
            steps[-1]["Scope"] = _between(line, "Scope  ", ";")
        elif steps and line.startswith(" " * 16):
            steps[-1][last] += line.strip()
        elif steps and not line.startswith(" "):
            break
    return steps


def _between(line: str, start: str, end: str) -> str:
    return line.partition(start)[2].partition(end)[0]


def _options(kind: str, said: dict[str, str]) -> dict[str, Any]:
    """What the form of an operation stores for the values entered into it."""
    if kind == "exec":
        return {"code": said["Code"]}
    if kind == "item-read":
        assert (said["Permissions"], said["IDs"]) == ("Full Access", "(none)"), said
        query = json.loads(said["Query"])
        return {"permissions": "$full", "collection": said["Collection"], "query": query}
    name, _, value = said["Header"].partition(": ")
    headers = [{"header": name, "value": value}]
    return {
        "method": said["Method"], "url": said["URL"], "headers": headers,
        "body": said["Request Body"],
    }  # fmt: skip
