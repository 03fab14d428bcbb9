"""Conversion of one entry of a sitemap, an RSS or an Atom feed to a SourceRecord or a refusal."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from lxml import etree

from shared.sitemap import w3c_dates
from worker.sources.records import EXTENDED, HINTS, RecordRefusal, SourceCounts, SourceRecord
from worker.sources.xml.extension_values import XML_SPACE, Extensions, label

if TYPE_CHECKING:
    from worker.sources.xml.xml_entries import Element, XmlEntry

_ATOM = "http://www.w3.org/2005/Atom"
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
    """Return the page of an RSS `<item>` (PROTOCOL F11).

    Its address is `link`, else a `guid` that is a permalink; its time is `pubDate`.
    """
    loc = _text(entry.element, "link") or _permalink(entry.element)
    refused = check_loc(loc, where, entry)
    if refused is not None or loc is None:
        return refused or RecordRefusal(where, "F11", "no link")
    stated = _text(entry.element, "pubDate")
    lastmod = w3c_dates.from_rfc822(stated) if stated else None
    if stated and lastmod is None:
        tally.add("F11", "pubDate is no RFC 822 date with a zone: no lastmod", where)
    return SourceRecord(loc=loc, where=where, lastmod=lastmod, silent=HINTS | EXTENDED)


def _permalink(element: Element) -> str | None:
    """Return the `guid`, which is an address unless it says otherwise."""
    guid = element.find("guid")
    if guid is None or guid.get("isPermaLink", "true").strip(XML_SPACE) != "true":
        return None
    text = (guid.text or "").strip(XML_SPACE)
    return text if "://" in text else None


def from_atom(entry: XmlEntry, where: str, tally: SourceCounts) -> SourceRecord | RecordRefusal:
    """Return the page of an Atom `<entry>`: first alternate `link`, time from `updated` (PROTOCOL
    F11).
    """
    namespace = etree.QName(entry.element).namespace or ""
    tag = f"{{{namespace}}}link" if namespace else "link"
    links = [
        child.get("href", "").strip(XML_SPACE)
        for child in entry.element.iterchildren(tag)
        if child.get("rel", "alternate") == "alternate"
    ]
    loc = links[0] if links else None
    if len(set(links)) > 1:
        tally.add("F11", "several alternate links: the first was taken", where)
    refused = check_loc(loc, where, entry)
    if refused is not None or loc is None:
        return refused or RecordRefusal(where, "F11", "no link")
    lastmod = _text(entry.element, "updated", namespace) or None
    return SourceRecord(loc=loc, where=where, lastmod=lastmod, silent=HINTS | EXTENDED)


def _text(element: Element, name: str, namespace: str = "") -> str | None:
    child = element.find(f"{{{namespace}}}{name}" if namespace else name)
    return None if child is None else (child.text or "").strip(XML_SPACE)
