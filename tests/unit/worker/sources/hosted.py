"""CMSes that run at their vendors: loopback servers that answer as their documents say."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from typing import Any

from tests.unit.worker.sources.cms import NOT_FOUND, Asked, Reply

KEY = "canary-7d1e-key"
DAY = "2026-11-20T10:00:00.000Z"
FORBIDDEN = Reply({"message": "Unauthorized"}, 401)


class Hosted:
    """A vendor's server, with small parts; it is at its limit every `limited`th request."""

    part = 2

    def __init__(self, limited: int = 3) -> None:
        self.rows: list[dict[str, Any]] = []
        self.limited = limited
        self.asked: list[Asked] = []

    def __call__(self, asked: Asked) -> Reply:
        self.asked.append(asked)
        if self.limited and len(self.asked) % self.limited == 0:
            return self.at_limit()
        if not self.knows(asked):
            return FORBIDDEN
        return self.answer(asked)

    def at_limit(self) -> Reply:
        return Reply({"message": "slow down"}, 429, {"Retry-After": "1"})

    def knows(self, asked: Asked) -> bool:
        return asked.headers.get("authorization") == f"Bearer {KEY}"

    def answer(self, asked: Asked) -> Reply:
        raise NotImplementedError

    @property
    def address(self) -> str:
        """What of the address of a source follows that of the server."""
        return ""


class Contentful(Hosted):
    """The Sync API of a space; drafts are no part of what is delivered."""

    address = "/spaces/s1/environments/master"

    def at_limit(self) -> Reply:
        return Reply(
            {"sys": {"id": "RateLimitExceeded"}}, 429, {"X-Contentful-RateLimit-Reset": "1"}
        )

    def answer(self, asked: Asked) -> Reply:
        if asked.path != f"{self.address}/sync":
            return NOT_FOUND
        token = asked.parameters.get("sync_token")
        if token is None:
            assert asked.parameters["initial"] == "true"
            assert asked.parameters["type"] == "Entry"
            token = f"{asked.parameters['content_type']}.0"
        kind, _, at = token.partition(".")
        rows = [row for row in self.rows if row["sys"]["contentType"]["sys"]["id"] == kind]
        end = int(at) + self.part
        root = f"http://{asked.headers['host']}{asked.path}?sync_token="
        after = {"nextPageUrl": f"{root}{kind}.{end}"} if end < len(rows) else {
            "nextSyncUrl": f"{root}later"
        }  # fmt: skip
        return Reply({"sys": {"type": "Array"}, "items": rows[int(at) : end], **after})


class Sanity(Hosted):
    """The Query API of a project: our one query, as GROQ would answer it."""

    address = "/production"

    def answer(self, asked: Asked) -> Reply:
        said = json.loads(asked.body)
        if not re.fullmatch(r"/v\d{4}-\d\d-\d\d/data/query/production", asked.path):
            return NOT_FOUND
        head = r"\*\[_type == \$kind && _id > \$last\] \| order\(_id\) \[0\.\.\.1000\] \{.*\}"
        assert re.fullmatch(head, said["query"], re.DOTALL), said["query"]
        drafts = asked.parameters.get("perspective") != "published"
        kind, last = said["params"]["kind"], said["params"]["last"]
        rows = sorted((row for row in self.rows if row["_type"] == kind), key=lambda r: r["_id"])
        rows = [row for row in rows if row["_id"] > last]
        rows = [row for row in rows if drafts or not row["_id"].startswith("drafts.")]
        return Reply({"ms": 3, "query": said["query"], "result": rows[:1000], "syncTags": []})


class Storyblok(Hosted):
    """The links of a space; folders are among them whatever is in them."""

    def knows(self, asked: Asked) -> bool:
        return asked.parameters.get("token") == KEY

    def answer(self, asked: Asked) -> Reply:
        if asked.path != "/v2/cdn/links":
            return NOT_FOUND
        given = asked.parameters
        size, at = min(int(given["per_page"]), 1000), int(given["page"])
        rows = [row for row in self.rows if row["published"] or row["is_folder"]]
        if given["version"] != "published":
            rows = self.rows
        shown = rows[(at - 1) * size : at * size]
        dates = {"published_at", "created_at", "updated_at"}
        if given.get("include_dates") != "1":
            shown = [{n: v for n, v in row.items() if n not in dates} for row in shown]
        links = {row["uuid"]: row for row in shown}
        return Reply({"links": links}, headers={"Total": str(len(rows)), "Per-Page": str(size)})


class Prismic(Hosted):
    """A repository: documents of one ref."""

    def knows(self, asked: Asked) -> bool:
        return asked.parameters.get("access_token") == KEY

    def answer(self, asked: Asked) -> Reply:
        given = asked.parameters
        if asked.path == "/api/v2":
            refs = [{"id": "release", "ref": "r9", "isMasterRef": False}]
            return Reply({"refs": [*refs, {"id": "master", "ref": "m1", "isMasterRef": True}]})
        if asked.path != "/api/v2/documents/search" or given["ref"] != "m1":
            return NOT_FOUND
        found = re.fullmatch(r'\[\[at\(document\.type,"(\w+)"\)\]\]', given["q"])
        assert found
        rows = [row for row in self.rows if row["type"] == found[1]]
        rows = [row for row in rows if given.get("lang") == "*" or row["lang"] == "en-us"]
        size, at = min(int(given["pageSize"]), self.part), int(given["page"])
        shown, pages = rows[(at - 1) * size : at * size], max(1, -(-len(rows) // size))
        return Reply({
            "page": at, "results_per_page": size, "results_size": len(shown),
            "total_results_size": len(rows), "total_pages": pages,
            "next_page": f"?page={at + 1}" if at < pages else None, "results": shown,
        })  # fmt: skip


class Shopify(Hosted):
    """The Admin GraphQL interface of a shop; a query that costs too much is answered 200."""

    def __init__(self, limited: int = 3) -> None:
        super().__init__(limited)
        self.objects: dict[str, list[dict[str, Any]]] = {}

    def at_limit(self) -> Reply:
        status = {"maximumAvailable": 2000, "currentlyAvailable": 10, "restoreRate": 100}
        cost = {"requestedQueryCost": 410, "actualQueryCost": None, "throttleStatus": status}
        error = {"message": "Throttled", "extensions": {"code": "THROTTLED"}}
        return Reply({"errors": [error], "extensions": {"cost": cost}})

    def knows(self, asked: Asked) -> bool:
        return asked.headers.get("x-shopify-access-token") == KEY

    def answer(self, asked: Asked) -> Reply:
        if not re.fullmatch(r"/admin/api/\d{4}-\d\d/graphql.json", asked.path):
            return NOT_FOUND
        said = json.loads(asked.body)
        found = re.search(r"\{\s+(\w+)\(query: \"published_status:published\"", said["query"])
        assert found
        name, start = found[1], int(said["variables"]["after"] or 0)
        rows = self.objects.get(name, [])
        end = start + min(self.part, said["variables"]["first"])
        more = {"hasNextPage": end < len(rows), "endCursor": str(end) if rows else None}
        return Reply({"data": {name: {"nodes": rows[start:end], "pageInfo": more}}})


class Drupal(Hosted):
    """JSON:API of a site in English, and German below /de/; a node without a translation is shown
    there in its own language, as Drupal does.
    """

    def knows(self, asked: Asked) -> bool:
        pair = base64.b64encode(f"reader:{KEY}".encode()).decode()
        return asked.headers.get("authorization") == f"Basic {pair}"

    def answer(self, asked: Asked) -> Reply:
        language = "de" if asked.path.startswith("/de/") else "en"
        path = asked.path.removeprefix("/de")
        if path == "/jsonapi":
            names = ("node--article", "node--page", "taxonomy_term--tags", "user--user", "self")
            return Reply({"links": {name: {"href": "x"} for name in names}})
        kind, bundle = path.removeprefix("/jsonapi/").split("/")
        number = {"node": "drupal_internal__nid", "taxonomy_term": "drupal_internal__tid"}[kind]
        given = asked.parameters
        assert given["filter[status]"] == "1"
        assert given["sort"] == given["filter[after][condition][path]"] == number
        assert given["filter[after][condition][operator]"] == ">"
        after = int(given["filter[after][condition][value]"])
        rows = [self._in(row, language) for row in self.rows if row["type"] == f"{kind}--{bundle}"]
        rows = [row for row in rows if row["attributes"]["status"]]
        rows = [row for row in rows if row["attributes"][number] > after]
        wanted = given[f"fields[{kind}--{bundle}]"].split(",")
        shown = [
            {**row, "attributes": {n: row["attributes"].get(n) for n in wanted}}
            for row in rows[: self.part]
        ]
        links = {"next": {"href": "opaque"}} if len(rows) > self.part else {}
        return Reply({"data": shown, "links": links})

    @staticmethod
    def _in(row: Mapping[str, Any], language: str) -> dict[str, Any]:
        found = {name: value for name, value in row.items() if name != "translations"}
        more = row.get("translations", {}).get(language)
        return found | {"attributes": row["attributes"] | (more or {})}
