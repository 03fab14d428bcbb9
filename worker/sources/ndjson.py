"""NDJSON files of pages: one JSON object per line, with the field names of an event."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn

from shared.errors import SourceError
from worker.sources.csv_pages import EXTRAS, FIELDS, UTF16_BOMS, record
from worker.sources.records import EXTENDED, Item, RecordRefusal, SourceCounts, SourceRecord
from worker.sources.source_streams import LINE_LIMIT, Document, SourceBody, TextLine, lines
from worker.sources.xml.extension_values import XML_SPACE, remark

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_TEXTS = FIELDS | EXTRAS
_GROUPED = frozenset({"group", "lang", "published", "title"})
_READ = _TEXTS | EXTENDED | _GROUPED
_FLAGS = frozenset({"type", "noindex", "canonical"})


def read_ndjson(document: Document) -> Iterator[Item]:
    """Yield the pages of an NDJSON file (UTF-8, gzip allowed), numbered by line.

    Raises SourceError for UTF-16. An object that excludes its page (a delete, `noindex`, another
    canonical address: PROTOCOL L8) is refused.
    """
    tally = SourceCounts(document.name)
    body = SourceBody(document.file, bound=False)
    for line in lines(body):
        where = f"{document.name}#{line.number}"
        if line.number == 1 and line.data is not None and line.data.startswith(UTF16_BOMS):
            raise SourceError(f"{document.name} is UTF-16; save it as UTF-8")
        if line.data is None or line.data.strip():
            yield _page(line, where, tally)
    if body.fault:
        yield RecordRefusal(document.name, *body.fault)
    yield from tally.notes()


def _page(line: TextLine, where: str, tally: SourceCounts) -> SourceRecord | RecordRefusal:
    if line.data is None:
        return RecordRefusal(
            where, "ndjson", f"line {line.number} is longer than {LINE_LIMIT} bytes"
        )
    try:
        values = _object(line.data)
    except (ValueError, RecursionError) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        return RecordRefusal(where, "ndjson", f"line {line.number}: {reason}")
    why = unlisted(values)
    if why:
        loc = values.get("loc")
        return RecordRefusal(where, "L8", why, loc if isinstance(loc, str) else None)
    for unread in values.keys() - _READ - _FLAGS:
        tally.drop(unread[:40])
    texts: dict[str, str] = {}
    for name in _TEXTS & values.keys():
        value = values[name]
        if value is None:
            continue
        if not isinstance(value, str):
            return RecordRefusal(
                where, "ndjson", f"line {line.number}: {name} is neither text nor number"
            )
        texts[name] = value.strip(XML_SPACE)
    page = record(texts, where)
    stated = {name: values[name] for name in EXTENDED | _GROUPED if values.get(name)}
    if isinstance(page, RecordRefusal) or values.keys().isdisjoint(EXTENDED | _GROUPED):
        return page
    remark(stated, where, tally)
    grouped = {name: stated[name] for name in sorted(_GROUPED & stated.keys())}
    return replace(
        page,
        **{name: stated[name] for name in EXTENDED & stated.keys()},
        extra={**(page.extra or {}), **grouped} or None,
        silent=page.silent - values.keys() - ({"alternates"} if "group" in stated else set()),
    )


def _object(data: bytes) -> dict[str, Any]:
    """Return one JSON object; numbers keep their text. Raises ValueError."""
    text = data.decode()
    value = json.loads(
        text,
        parse_int=str,
        parse_float=str,
        parse_constant=_no_constant,
        object_pairs_hook=_unique,
    )
    if not isinstance(value, dict):
        raise ValueError("not a JSON object")  # noqa: TRY004  one kind of fault for the caller
    for name in value:
        name.encode()
    json.dumps({name: value[name] for name in _READ & value.keys()}, ensure_ascii=False).encode()
    return value  # a lone surrogate is not text (RELIABILITY T9)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON value")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("a field is named twice")
    return value


def unlisted(values: Mapping[str, Any]) -> str | None:
    """Return why the page of these event fields must not be listed; None if it may (PROTOCOL
    L8).
    """
    kind = values.get("type", "upsert")
    if kind != "upsert":
        return f"type {str(kind)[:40]!r} lists no page"
    if values.get("noindex") not in (None, False):
        return "the page is marked noindex"
    canonical = values.get("canonical")
    if canonical not in (None, "", values.get("loc")):
        return "the page names another canonical address"
    return None
