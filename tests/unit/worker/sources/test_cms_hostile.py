"""Interfaces that answer anything at all: a reader of a CMS ends with pages or a SourceError."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest

from shared.config.sites.cms_connections import Connection
from shared.config.sites.import_source import CMSES
from shared.errors import SourceError
from tests.unit.worker.sources.cms import Asked, Reply, served
from worker.sources import Note, RecordRefusal, SourceOptions, SourceRecord, read

KEY = "canary:canary-key"
CONNECTION = Connection.model_validate(
    {"permalinks": {"post": "/{locale}/{slug}/{a.b}"}, "locales": ["en", "de"]}
)
JUNK: list[Any] = [
    None, True, 3, -1, 1e308, "x", "", [], [3], [None], [[]], {}, {"x": {}}, [{}], [{"id": 1}],
    [{"id": "1", "documentId": 3, "_id": "d", "sys": 5, "attributes": []}],
    [{"id": 1, "_id": "d", "documentId": "d", "slug": {"en": 3}, "fields": {"slug": {"en": []}},
      "sys": {"type": "Entry", "id": "e"}, "attributes": {"path": [1]}, "lang": 3, "meta": 1}],
    [{"id": "\ud800", "documentId": "\ud800", "_id": "\ud800", "slug": "\ud800", "_type": "post"}],
    {"en": {"id": [], "is_folder": 3}}, {"pagination": {"total": "3", "next": 1}},
    {"pagination": {"total": 9, "next": 1, "pageSize": 0}, "total_count": 3, "filter_count": 9},
    {"products": {"nodes": [{}], "pageInfo": {"hasNextPage": True, "endCursor": None}}},
]  # fmt: skip
NAMES = (
    "data", "docs", "items", "links", "meta", "nextPage", "nextPageUrl", "nextSyncUrl", "posts",
    "pages", "tags", "authors", "refs", "result", "results", "totalDocs", "total_pages",
    "total_results_size", "errors", "extensions", "namespaces",
)  # fmt: skip


@pytest.mark.parametrize("kind", CMSES)
def test_any_answer_gives_pages_or_an_error_of_ours(kind: str) -> None:
    said: list[Any] = [None]

    def answer(asked: Asked) -> Reply:
        whole = dict.fromkeys(NAMES, said[0])
        if asked.path.endswith("/jsonapi"):
            whole["links"] = {"node--post": {}}
        elif asked.path.endswith("/api/v2"):
            whole["refs"] = [{"isMasterRef": True, "ref": "r"}]
        elif "/fields/" in asked.path:
            whole["data"] = [{"field": "id", "schema": {"is_primary_key": True}}]
        return Reply(whole, headers={"total": "2", "x-wp-total": "3"})

    access = SourceOptions(KEY, "", {kind: CONNECTION}, "https://a.example", lambda _: None)
    with served(answer) as url:
        address = f"{kind}:{url}/data" if kind == "sanity" else f"{kind}:{url}"
        for said[0] in JUNK:
            with contextlib.suppress(SourceError):
                items = list(read(address, access))
                assert all(isinstance(i, (SourceRecord, RecordRefusal, Note)) for i in items)
