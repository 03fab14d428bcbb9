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
_GROUPED = frozenset({"group", "lang", "published", "title", "publish_at", "expires"})
_MORE = EXTENDED | _GROUPED
_READ = _TEXTS | _MORE
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
    if not _TEXTS.issuperset(values):
        why = unlisted(values)
        if why:
            loc = values.get("loc")
            return RecordRefusal(where, "L8", why, loc if isinstance(loc, str) else None)
        for unread in values.keys() - _READ - _FLAGS:
            tally.drop(unread[:40])
    texts: dict[str, str] = {}
    for name, value in values.items():
        if value is None or name not in _TEXTS:
            continue
        if not isinstance(value, str):
            return RecordRefusal(
                where, "ndjson", f"line {line.number}: {name} is neither text nor number"
            )
        texts[name] = value.strip(XML_SPACE)
    page = record(texts, where)
    if isinstance(page, RecordRefusal) or _MORE.isdisjoint(values):
        return page
    stated = {name: values[name] for name in _MORE if values.get(name)}
    remark(stated, where, tally)
    grouped = {name: stated[name] for name in sorted(_GROUPED & stated.keys())}
    return replace(
        page,
        **{name: stated[name] for name in EXTENDED & stated.keys()},
        extra={**(page.extra or {}), **grouped} or None,
        silent=page.silent.difference(values, ("alternates",) if "group" in stated else ()),
    )


def _object(data: bytes) -> dict[str, Any]:
    """Return one JSON object; numbers keep their text. Raises ValueError."""
    text = data.decode()
    try:
        value, end = _DECODER.raw_decode(text)
    except ValueError:
        end = -1
    if end != len(text):  # space around it, or a fault
        value = _DECODER.decode(text)
    if not isinstance(value, dict):
        raise ValueError("not a JSON object")  # noqa: TRY004  one kind of fault for the caller
    if b"\\u" in data:  # may be half of a surrogate pair, which is no text (RELIABILITY T9)
        for name in value:
            name.encode()
        read = {name: value[name] for name in _READ & value.keys()}
        json.dumps(read, ensure_ascii=False).encode()
    return value


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON value")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("a field is named twice")
    return value


_DECODER = json.JSONDecoder(
    parse_int=str, parse_float=str, parse_constant=_no_constant, object_pairs_hook=_unique
)


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
