"""CMSes of one's own, in the shapes that tests/system/cms saw them answer, with small parts."""

from __future__ import annotations

from typing import Any

from tests.unit.worker.sources.cms import NOT_FOUND, Asked, Reply
from tests.unit.worker.sources.hosted import Hosted


class Strapi(Hosted):
    """The REST API of Strapi 5, configured to give `part` entries at most."""

    def answer(self, asked: Asked) -> Reply:
        given = asked.parameters
        if asked.path != "/api/articles":
            return NOT_FOUND
        if any(name.startswith("populate[seo]") for name in given):
            return Reply({"error": {"status": 400, "message": "Invalid key seo"}}, 400)
        assert (given["locale"], given["status"], given["sort"]) == ("*", "published", "documentId")
        least = given.get("filters[documentId][$gte]", "")
        rows = sorted(self.rows, key=lambda row: str(row["documentId"]))
        rows = [row for row in rows if row["publishedAt"] and row["documentId"] >= least]
        size = min(self.part, int(given["pagination[pageSize]"]))
        return Reply({"data": rows[:size], "meta": {"pagination": {"page": 1, "pageSize": size}}})


class Wagtail(Hosted):
    """The API v2 of Wagtail, without WAGTAILAPI_LIMIT_MAX, and with dates or without."""

    limit = 20

    def __init__(self, limited: int = 3, *, dated: bool = True) -> None:
        super().__init__(limited)
        self.dated = dated

    def knows(self, asked: Asked) -> bool:
        return "authorization" not in asked.headers

    def answer(self, asked: Asked) -> Reply:
        given = asked.parameters
        if asked.path != "/api/v2/pages/":
            return NOT_FOUND
        known = {"_", "id", "html_url", *(["last_published_at"] if self.dated else [])}
        if unknown := set(given["fields"].split(",")) - known:
            return Reply({"message": f"unknown fields: {', '.join(unknown)}"}, 400)
        if int(given["limit"]) > self.limit:
            return Reply({"message": f"limit cannot be higher than {self.limit}"}, 400)
        assert given["order"] == "id"
        start, size = int(given["offset"]), int(given["limit"])
        rows = sorted(self.rows, key=lambda row: int(row["id"]))[start : start + size]
        names = {"id", "meta", *given["fields"].split(",")}
        shown = [{name: value for name, value in row.items() if name in names} for row in rows]
        return Reply({"meta": {"total_count": len(self.rows)}, "items": shown})


class Directus(Hosted):
    """The REST API of Directus: it compares numbers only, and refuses fields that are not there."""

    def __init__(self, limited: int = 3) -> None:
        super().__init__(limited)
        self.collections: dict[str, tuple[str, str, list[dict[str, Any]]]] = {}

    def answer(self, asked: Asked) -> Reply:
        _, first, name, *_ = (*asked.path.split("/"), "", "")
        if name not in self.collections:
            return Reply({"errors": [{"extensions": {"code": "FORBIDDEN"}}]}, 403)
        key, kind, rows = self.collections[name]
        known = list(rows[0])
        if first == "fields":
            return Reply({"data": [
                {"field": field, "type": kind if field == key else "string",
                 "schema": {"is_primary_key": field == key}}
                for field in known
            ]})  # fmt: skip
        given = asked.parameters
        assert given["sort"] == key
        assert set(given["fields"].split(",")) <= set(known)
        rows = sorted(rows, key=lambda row: row[key])
        if (after := given.get(f"filter[{key}][_gt]")) is not None:
            if kind != "integer":
                return Reply({"errors": [{"extensions": {"code": "INVALID_QUERY"}}]}, 400)
            rows = [row for row in rows if row[key] > int(after)]
        start = int(given.get("offset", 0))
        meta = {"meta": {"filter_count": len(rows)}} if given.get("meta") else {}
        return Reply({"data": rows[start : start + self.part], **meta})


class Payload(Hosted):
    """The REST API of Payload 3 for whoever has a key of its users."""

    def knows(self, asked: Asked) -> bool:
        return asked.headers.get("authorization") == "users API-Key canary-7d1e-key"

    def answer(self, asked: Asked) -> Reply:
        given = asked.parameters
        if asked.path != "/api/posts":
            return NOT_FOUND
        assert (given["locale"], given["draft"], given["sort"]) == ("all", "false", "id")
        start = (int(given["page"]) - 1) * self.part
        rows = sorted(self.rows, key=lambda row: int(row["id"]))
        more = start + self.part < len(rows)
        return Reply({
            "docs": rows[start : start + self.part], "totalDocs": len(rows), "limit": self.part,
            "page": int(given["page"]), "hasNextPage": more,
            "nextPage": int(given["page"]) + 1 if more else None,
        })  # fmt: skip
