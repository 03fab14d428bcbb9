"""Change events: the values a sender may state, and the form in which the inbox stores them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from shared.errors import Fault, InvalidError, SitemapdError
from shared.events import answer_fields, event_fields
from shared.events import extension_fields as extensions
from shared.events.event_fields import MAX_VERSION, RESYNC, TYPES, EventFields, EventRules
from shared.sitemap import fragments
from shared.sitemap.entry import Entry
from shared.sitemap.extensions.alternates import Alternates
from shared.sitemap.shards import nameable

NATIVE = "native"
"""The source of events sent to /events, in our own form."""

UNLIST, RELIST = "unlist", "relist"
"""Types of events of our own, after a look at a page; no sender may use them."""

SCHEMA = 3
PLAIN_SCHEMA, EXTENDED_SCHEMA = 1, 2
"""Versions of the stored form: a worker leaves an unknown version pending for a newer worker, so an
event is written in the oldest one that can hold it. 2 has the members of
shared.sitemap.extensions, and resync; 3 those of _NEWEST, unlist and relist.
"""

FIELDS = (*event_fields.CHECKS, *answer_fields.CHECKS, *extensions.CHECKS)


class SchemaError(SitemapdError):
    """A stored event that cannot be read."""


class NewerSchemaError(SchemaError):
    """A stored event that a newer version accepted: it waits for a newer worker."""


@dataclass(frozen=True)
class Event:
    """One change of one page, with every value valid.

    `loc` and `lastmod` are canonical; `loc` is None only for a delete by `id`. `version` is in
    milliseconds since 1970, None for the order of arrival. `section` None keeps the page in its
    section, and puts a new one where the routing says. `source`, `kind` and `locale` make `id`
    unique among senders. `images` to `alternates` are canonical values of
    shared.sitemap.extensions; `group` (of translations) goes with `lang`, the codes this page is
    the version for; `published` (first publication, in the form of `lastmod`) chooses the month of
    a split section, `title` is for feeds, and for llms.txt with `description`. The page is listed
    from `publish_at` until `expires` (in the form of `lastmod`; a date is its first and its last
    instant, UTC). `status` and `redirect_to` are what the page answers with (answer_fields). An
    `unlist` or `relist` is about the page that has this `stamp` (page_record.stamp), and says
    `why`; `entry` is the fragment that is listed again, in the `group` of this digest. A `resync`
    names no page: its scope is a `section`, the URLs that begin with `prefix` (canonical), or the
    whole site.

    Parsed and loaded events have only the members that were given, the others by the class: the
    constructor sets each of two dozen (1.3 against 0.5 us).
    """

    type: str
    loc: str | None = None
    id: str | None = None
    section: str | None = None
    version: int | None = None
    lastmod: str | None = None
    changefreq: str | None = None
    priority: str | None = None
    noindex: bool = False
    canonical: str | None = None
    prefix: str | None = None
    source: str = NATIVE
    kind: str = ""
    locale: str = ""
    images: tuple[Mapping[str, Any], ...] = ()
    videos: tuple[Mapping[str, Any], ...] = ()
    news: Mapping[str, Any] | None = None
    alternates: Alternates = ()
    group: str | None = None
    lang: tuple[str, ...] = ()
    published: str | None = None
    title: str | None = None
    publish_at: str | None = None
    expires: str | None = None
    description: str | None = None
    status: int | None = None
    redirect_to: str | None = None
    stamp: int | None = None
    entry: str | None = None
    why: str | None = None

    def dump(self) -> bytes:
        """The stored form: JSON without the members that have their default."""
        members = {
            name: value
            for name, value in vars(self).items()
            if value is not None and value != _DEFAULTS[name]
        }
        plain = _EXTENDED.isdisjoint(members) and self.type != RESYNC
        schema = PLAIN_SCHEMA if plain else EXTENDED_SCHEMA
        if not _NEWEST.isdisjoint(members):
            schema = SCHEMA
        return _encode({"v": schema, **members}).encode()

    @classmethod
    def load(cls, stored: bytes) -> Event:
        """The event that `dump` wrote. Raises SchemaError for anything else, NewerSchemaError for a
        version that this worker does not know.
        """
        if found := _MOSTLY.fullmatch(stored):
            event = cls.__new__(cls)
            vars(event).update(type="upsert", loc=found[1].decode())
            if found[2]:
                vars(event)["lastmod"] = found[2].decode()
            return event
        try:
            text = stored.decode()
            members, end = _parse(text)
            if end != len(text):
                members = json.loads(text)
            if b"\\u" in stored:
                json.dumps(members, ensure_ascii=False).encode()  # half of a surrogate pair
            schema = members.pop("v")
            if schema > SCHEMA:
                raise NewerSchemaError(f"event of schema {schema}, this worker reads {SCHEMA}")
            sound = _KINDS.issuperset(zip(members, map(type, members.values()), strict=True))
            if sound and not _EXTENDED.isdisjoint(members):
                extensions.restore(members)
            event = cls.__new__(cls)
            vars(event).update(members)
            sound = sound and event.type in _STORED_TYPES and event._writable()
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
            raise SchemaError(f"stored event cannot be read: {error}") from error
        if not sound:
            raise SchemaError("stored event cannot be read: it is none that was accepted")
        return event

    def _writable(self) -> bool:
        """True if it names a page, in texts that any XML file can hold (RELIABILITY T14), and a
        section that files can be named after (T35).
        """
        loc, version = self.loc, self.version
        if self.section is not None and not nameable(self.section):
            return False
        if version is not None and not 0 <= version <= MAX_VERSION:
            return False
        if not answer_fields.is_sound(self.status):
            return False
        if self.type == RESYNC:
            return loc is None
        if self.type in _OWN_TYPES and not self._own():
            return False
        if loc is None:
            return self.type == "delete" and self.id is not None
        plain = f"{self.lastmod or ''} {self.changefreq or ''} {self.priority or ''}"
        return loc.isascii() and loc.isprintable() and _PLAIN.fullmatch(plain) is not None

    def _own(self) -> bool:
        """True if it is an event of our own: an entry is written into a file as it is (T35)."""
        if self.loc is None or self.stamp is None or not 0 <= self.stamp < 1 << 64:
            return False
        if self.type == UNLIST:
            return self.entry is None and self.group is None
        fragment = (self.entry or "").encode()
        if not fragment.startswith(fragments.key(self.loc)):
            return False
        digest = bytes.fromhex(self.group or "")
        known = len(digest) in {0, 8} and bool(digest) == bool(self.lang)
        return known and fragments.render(fragments.parse(fragment)) == fragment


_DATE = r"[0-9]{4}(?:-[0-9]{2}){0,2}(?:T[0-9:.]+(?:Z|[+-][0-9:]+))?"
_PLAIN = re.compile(rf"(?:{_DATE})? [a-z]* [0-9.]*")
_MOSTLY = re.compile(
    rf'{{"v":1,"type":"upsert","loc":"([ !#-\[\]-~]+)"(?:,"lastmod":"({_DATE})")?}}'.encode()
)
"""The stored form of most events, read in a third of the time of any other."""
_EXTENDED = frozenset(extensions.CHECKS)
_NEWEST = frozenset({*extensions.TIMED_MEMBERS, "description", *answer_fields.CHECKS, "stamp"})
_OWN_TYPES = frozenset({UNLIST, RELIST})
_STORED_TYPES = frozenset({*TYPES, *_OWN_TYPES})
_PUBLISHED = frozenset(extensions.PUBLISHED_MEMBERS)
_parse = json.JSONDecoder().raw_decode
_encode = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode
_DEFAULTS = asdict(Event(type=""))
_KINDS = frozenset(
    {(n, str) for n, d in _DEFAULTS.items() if type(d) in {str, type(None)}}
    | {(n, type(None)) for n, d in _DEFAULTS.items() if d is None}
    | {(n, list) for n, d in _DEFAULTS.items() if d == ()}
    | {("version", int), ("status", int), ("stamp", int), ("noindex", bool), ("news", dict)}
) - {("version", str), ("status", str), ("stamp", str), ("news", str)}
"""Each member with the types it may have; a set, because every event is checked."""


def parse(
    item: object,
    rules: EventRules,
    position: int | None = None,
    warnings: list[Fault] | None = None,
) -> Event:
    """Parse one JSON value into an event. Raises InvalidError with every fault at once.

    `position` is the item's position in its batch, for the report; warnings are added to
    `warnings`. DESIGN 6 lists the members.
    """
    if not isinstance(item, dict):
        raise InvalidError(Fault("", "event", "send an object with a type and a loc", position))
    checked = EventFields(item, rules)
    # Checks of absent members would be most of the cost of an event.
    values: dict[str, Any] = {}
    for name, check in _CHECKS.items():
        if name in item or name == "type":
            values[name] = check(checked)
    extended = not _FURTHER.isdisjoint(item)
    if extended:
        values |= {n: check(checked) for n, check in answer_fields.CHECKS.items() if n in item}
        values |= extensions.taken(checked, values["type"])
    if not item.keys() <= _KNOWN:
        checked.refuse((name for name in item if name not in _KNOWN), ", ".join(FIELDS))
    checked.require(values["type"])
    if rules.news and values.get("section") in rules.news:
        _require_news(checked, values)
    if extended and not checked.faults and not _PUBLISHED.isdisjoint(item):
        _require_size(checked, values)
    if checked.faults:
        raise InvalidError(*(Fault(*fault, position) for fault in checked.faults))
    if warnings is not None and checked.warnings:
        warnings.extend(Fault(*warning, position) for warning in checked.warnings)
    event = Event.__new__(Event)
    vars(event).update(values)
    return event


def parse_all(
    items: Iterable[object], rules: EventRules, most: int
) -> tuple[list[Event], list[Fault]]:
    """Parse the items of one delivery into events, with warnings for their sender.

    Raises InvalidError with the faults of every item, up to `most` (RELIABILITY T10). At most
    `most` warnings.
    """
    events: list[Event] = []
    faults: list[Fault] = []
    warnings: list[Fault] = []
    for position, item in enumerate(items):
        try:
            events.append(parse(item, rules, position, warnings))
        except InvalidError as error:
            faults.extend(error.faults)
            if len(faults) >= most:
                break
    if faults:
        raise InvalidError(*faults[:most])
    return events, warnings[:most]


_CHECKS = event_fields.CHECKS
_FURTHER = frozenset({*answer_fields.CHECKS, *extensions.CHECKS})
_KNOWN = frozenset(FIELDS)


def _require_news(checked: EventFields, values: Mapping[str, Any]) -> None:
    if values["type"] == "upsert" and not values.get("noindex") and "news" not in checked.item:
        detail = f"a page in the section {values['section']} needs its news: it is a news section"
        checked.fault("news", "PROTOCOL W1", detail)


def _require_size(checked: EventFields, values: Mapping[str, Any]) -> None:
    """Report an entry that is too large for any file, with its extensions (PROTOCOL F7)."""
    names = ("lastmod", "changefreq", "priority", *extensions.PUBLISHED_MEMBERS)
    members = {name: values[name] for name in names if name in values}
    size = len(fragments.render(Entry(checked.loc or "", **members)))
    most = min(checked.rules.most_bytes, event_fields.MOST_BYTES)
    if size > most:
        longest = max(
            extensions.PUBLISHED_MEMBERS, key=lambda name: len(str(members.get(name, "")))
        )
        detail = f"the page takes {size} bytes with it, at most {most} are allowed: send less"
        checked.fault(longest, "PROTOCOL F7", detail)
