"""Conversion of one entry of a sitemap, an RSS or an Atom feed to a SourceRecord or a refusal."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from lxml import etree

from shared.sitemap import w3c_dates
from shared.sitemap.feed_entry import FeedEntry
from worker.sources.records import EXTENDED, HINTS, RecordRefusal, SourceCounts, SourceRecord
from worker.sources.xml.extension_values import XML_SPACE, Extensions, label

if TYPE_CHECKING:
    from worker.sources.xml.xml_entries import Element, XmlEntry

_SINGLE: Final = frozenset({"loc", "lastmod", "changefreq", "priority"})


def from_urlset(entry: XmlEntry, where: str, tally: SourceCounts) -> SourceRecord | RecordRefusal:
    """Return the page of a `<url>` or `<sitemap>`, by the local names of its namespace (PROTOCOL
    F13).
    """
    namespace = entry.element.tag.rpartition("}")[0]
    values: dict[str, str] = {}
    conflicts: set[str] = set()
    extensions = Extensions(where, tally)
    for child in entry.element:
        owner, _, name = child.tag.rpartition("}")
        if owner != namespace or name not in _SINGLE:
            if not extensions.add(child, owner.removeprefix("{"), name):
                tally.drop(label(owner, name))
            continue
        if len(child):
            return RecordRefusal(where, "F13", f"{name} contains other tags")
        text = (child.text or "").strip(XML_SPACE)
        if name in values and (name == "loc" or values[name] != text):
            conflicts.add(name)
        values.setdefault(name, text)
    record = _from_values(entry, where, tally, values, conflicts)
    if extensions.members and isinstance(record, SourceRecord):
        return replace(record, **extensions.members)
    return record


def _from_values(
    entry: XmlEntry, where: str, tally: SourceCounts, values: dict[str, str], conflicts: set[str]
) -> SourceRecord | RecordRefusal:
    if "loc" in conflicts:
        return RecordRefusal(where, "F13", "more than one loc", values["loc"])
    for name in sorted(conflicts):
        values[name] = ""  # the true value is unknown (PROTOCOL M3)
        tally.add("F13", f"several {name} that differ: none was taken", where)
    refused = check_loc(values.get("loc"), where, entry)
    if refused is not None:
        return refused
    return SourceRecord(
        loc=values["loc"],
        where=where,
        lastmod=values.get("lastmod") or None,
        changefreq=values.get("changefreq") or None,
        priority=values.get("priority") or None,
    )


def check_loc(loc: str | None, where: str, entry: XmlEntry | None = None) -> RecordRefusal | None:
    """Return the refusal of an invalid address, or None."""
    if not loc:
        return RecordRefusal(where, "F13", "no loc" if loc is None else "an empty loc")
    if "\ufffd" in loc:
        return RecordRefusal(where, "L3", "characters of the address were lost (U+FFFD)", loc)
    entity = entry.doubtful(loc) if entry else None
    if entity:
        return RecordRefusal(where, "F4", f"&{entity}; is not defined in XML: what was meant?", loc)
    return None


def from_rss(entry: XmlEntry, where: str, tally: SourceCounts) -> SourceRecord | RecordRefusal:
    """Return the page of an RSS `<item>` (PROTOCOL F11); its time is `pubDate`."""
    found = _entry(entry.element, "", atom=False)
    stated = found.said("pubDate")
    lastmod = w3c_dates.from_rfc822(stated) if stated else None
    page = _from_entry(entry, found, where, lastmod)
    if stated and lastmod is None and isinstance(page, SourceRecord):
        tally.add("F11", "pubDate is no RFC 822 date with a zone: no lastmod", where)
    return page


def from_atom(entry: XmlEntry, where: str, tally: SourceCounts) -> SourceRecord | RecordRefusal:
    """Return the page of an Atom `<entry>` (PROTOCOL F11); its time is `updated`."""
    found = _entry(entry.element, etree.QName(entry.element).namespace or "", atom=True)
    if found.several_links:
        tally.add("F11", "several alternate links: the first was taken", where)
    return _from_entry(entry, found, where, found.said("updated") or None)


def _entry(element: Element, namespace: str, *, atom: bool) -> FeedEntry:
    entry = FeedEntry(atom=atom)
    for child in element:
        owner, _, name = child.tag.rpartition("}")
        if owner.removeprefix("{") == namespace and name in entry.names:
            entry.add(name, child.attrib, child.text or "")
    return entry


def _from_entry(
    entry: XmlEntry, found: FeedEntry, where: str, lastmod: str | None
) -> SourceRecord | RecordRefusal:
    refused = check_loc(found.link, where, entry)
    if refused is not None or found.link is None:
        return refused or RecordRefusal(where, "F11", "no link")
    return SourceRecord(loc=found.link, where=where, lastmod=lastmod, silent=HINTS | EXTENDED)
