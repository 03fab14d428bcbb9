"""Sources for the tests of readers, and what was read of them, at a glance."""

from __future__ import annotations

from collections.abc import Callable

from worker.sources import Note, RecordRefusal, SourceRecord, read

NS = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'

Put = Callable[..., str]


def urlset(*entries: str, attributes: str = NS) -> str:
    """A sitemap of these `<url>` contents."""
    body = "\n".join(f"<url>{entry}</url>" for entry in entries)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<urlset {attributes}>\n{body}\n</urlset>\n'


def split(source: str) -> tuple[list[str], list[tuple[str, str]], list[tuple[str, str]]]:
    """The locs read; where and by which rule something was refused; and noted."""
    items = list(read(source))
    return (
        [item.loc for item in items if isinstance(item, SourceRecord)],
        [(item.where, item.rule) for item in items if isinstance(item, RecordRefusal)],
        [(item.where, item.rule) for item in items if isinstance(item, Note)],
    )
