"""Change events: what a sender may say, checked member by member, and how the inbox keeps it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass

from shared import urls, w3c
from shared.entries import CHANGEFREQS, priority_text
from shared.errors import DateError, Fault, InvalidError, SitemapdError, UrlError
from shared.locator import MAX_VERSION
from shared.urls import Base

SCHEMA = 1
"""Version of the stored form; a worker leaves what it does not know pending for a newer one."""

TYPES = ("upsert", "delete")
FIELDS = (
    "type", "loc", "id", "section", "version", "lastmod", "changefreq", "priority", "noindex",
    "canonical",
)  # fmt: skip
MAX_ID = 512
_SURROGATE = re.compile(r"[\ud800-\udfff]")


class SchemaError(SitemapdError):
    """The stored event cannot be read."""


class NewerSchemaError(SchemaError):
    """The stored event was accepted by a newer version: it waits for a newer worker."""


@dataclass(frozen=True, slots=True)
class Rules:
    """What one site accepts: URLs under `base`, pages in `sections` (names)."""

    base: Base
    sections: frozenset[str]


@dataclass(frozen=True, slots=True)
class Event:
    """One change of one page, as its sender meant it, every value already valid.

    `loc` and `lastmod` are canonical; `loc` is None only for a delete by `id`. `version` is in
    milliseconds since 1970, None for "in order of arrival". `section` None means "where it is,
    else `pages`". `source`, `kind` and `locale` make `id` unique among senders.
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
    source: str = "native"
    kind: str = ""
    locale: str = ""

    def dump(self) -> bytes:
        """The stored form: JSON, members with their default left out."""
        members = {name: v for name in _STORED if (v := getattr(self, name)) != _DEFAULTS[name]}
        return _encode({"v": SCHEMA, **members}).encode()

    @classmethod
    def load(cls, stored: bytes) -> Event:
        """The event of what `dump` gave; SchemaError for anything else."""
        try:
            members = json.loads(stored.decode())
            schema = members.pop("v")
            if schema > SCHEMA:
                raise NewerSchemaError(f"event of schema {schema}, this worker reads {SCHEMA}")
            sound = _KINDS.issuperset(zip(members, map(type, members.values()), strict=True))
            event = cls(**members)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise SchemaError(f"stored event cannot be read: {error}") from error
        if not sound or event.type not in TYPES or not event._writable():
            raise SchemaError("stored event cannot be read: it is none that was accepted")
        return event

    def _writable(self) -> bool:
        """Whether it names a page, in texts that any XML file can hold (RELIABILITY T14)."""
        loc = self.loc
        if loc is None:
            return self.type == "delete" and self.id is not None
        plain = (self.lastmod or "") + (self.changefreq or "") + (self.priority or "")
        return loc.isascii() and loc.isprintable() and _PLAIN.fullmatch(plain) is not None


_PLAIN = re.compile(r"[0-9A-Za-z:.+-]*")
_encode = json.JSONEncoder(separators=(",", ":")).encode
_DEFAULTS = asdict(Event(type=""))
_STORED = tuple(_DEFAULTS)
_KINDS = frozenset(
    {(name, str) for name in _STORED if name not in {"version", "noindex"}}
    | {(name, type(None)) for name in _STORED if _DEFAULTS[name] is None}
    | {("version", int), ("noindex", bool)}
)
"""Each member with the types it may have; a set, for this is asked of every event."""


def parse(item: object, rules: Rules, position: int | None = None) -> Event:
    """The event of one JSON value; InvalidError names every fault at once.

    `position` is the item's place in its batch, for the report. DESIGN 6 lists the members.
    """
    if not isinstance(item, dict):
        raise InvalidError(Fault("", "event", "send an object with a type and a loc", position))
    checked = _Members(item, rules)
    # Checks of members that are not there would be most of the cost of an event.
    values = {n: check(checked) for n, check in _CHECKS.items() if n in item or n == "type"}
    if not item.keys() <= _CHECKS.keys():
        checked.refuse(name for name in item if name not in FIELDS)
    checked.require(values)
    if checked.faults:
        raise InvalidError(*(Fault(*fault, position) for fault in checked.faults))
    return Event(**values)  # type: ignore[arg-type]  # each check returns its member's type


class _Members:
    """The members of one item while they are checked, and the faults found so far."""

    def __init__(self, item: Mapping[str, object], rules: Rules) -> None:
        self.item, self.rules = item, rules
        self.faults: list[tuple[str, str, str]] = []

    def fault(self, field: str, rule: str, detail: str) -> None:
        self.faults.append((field, rule, detail))

    def text(self, name: str) -> str | None:
        value = self.item.get(name)
        if value is None or isinstance(value, str):
            return value
        self.fault(name, "type", "must be a string")
        return None

    def refuse(self, names: Iterable[str]) -> None:
        for name in names:
            self.fault(name[:64], "unknown-field", f"not a member of an event; known: {_KNOWN}")

    def require(self, values: Mapping[str, object]) -> None:
        if values["type"] == "upsert" and self.item.get("loc") is None:
            self.fault("loc", "PROTOCOL L1", "an upsert needs the absolute URL of the page")
        if values["type"] == "delete" and self.item.get("loc") is self.item.get("id") is None:
            self.fault("loc", "required", "a delete needs a loc, an id, or both")


_KNOWN = ", ".join(FIELDS)


def _type(members: _Members) -> str:
    value = members.item.get("type")
    if value in TYPES:
        return str(value)
    members.fault("type", "event-type", f"must be one of {', '.join(TYPES)}")
    return ""


def _loc(members: _Members) -> str | None:
    text = members.text("loc")
    if text is None:
        return None
    try:
        return urls.canonical(text, members.rules.base)
    except UrlError as error:
        members.fault("loc", f"PROTOCOL {error.rule}", error.detail)
        return None


def _canonical(members: _Members) -> str | None:
    """The canonical URL in the form of loc; one on another site stays as it is: it differs."""
    text = members.text("canonical")
    if text is None:
        return None
    if not text.lower().startswith(("http://", "https://")):
        members.fault("canonical", "PROTOCOL L1", "must be an absolute URL, or left out")
        return None
    try:
        return urls.canonical(text, members.rules.base)
    except UrlError:
        return text


def _id(members: _Members) -> str | None:
    value = members.item.get("id")
    if type(value) is int and abs(value) < 10 ** (MAX_ID - 1):
        return str(value)
    text = members.text("id")
    if text is not None and not 0 < len(text) <= MAX_ID:
        members.fault("id", "length", f"must have 1 to {MAX_ID} characters")
    elif text is not None and _SURROGATE.search(text):
        members.fault("id", "RELIABILITY T9", "half of a surrogate pair is no text")
    return text


def _section(members: _Members) -> str | None:
    text = members.text("section")
    if text is None or text in members.rules.sections:
        return text
    known = ", ".join(sorted(members.rules.sections))
    members.fault("section", "section", f"not configured for this site; configured: {known}")
    return None


def _version(members: _Members) -> int | None:
    value = members.item.get("version")
    try:
        if isinstance(value, str):
            value = w3c.epoch_ms(value)
    except DateError as error:
        members.fault("version", "PROTOCOL M1", str(error))
        return None
    if value is None or (type(value) is int and 0 <= value <= MAX_VERSION):
        return value
    members.fault("version", "version", "must be a W3C datetime or milliseconds since 1970")
    return None


def _lastmod(members: _Members) -> str | None:
    text = members.text("lastmod")
    try:
        return None if text is None else w3c.canonical(text)
    except DateError as error:
        members.fault("lastmod", "PROTOCOL M1", str(error))
        return None


def _changefreq(members: _Members) -> str | None:
    text = members.text("changefreq")
    if text is not None and text not in CHANGEFREQS:
        known = ", ".join(sorted(CHANGEFREQS))
        members.fault("changefreq", "PROTOCOL M8", f"must be one of {known}")
    return text


def _priority(members: _Members) -> str | None:
    value = members.item.get("priority")
    text = priority_text(value)
    if value is not None and text is None:
        members.fault("priority", "PROTOCOL M8", "must be a decimal from 0.0 to 1.0")
    return text


def _noindex(members: _Members) -> bool:
    value = members.item.get("noindex", False)
    if not isinstance(value, bool):
        members.fault("noindex", "type", "must be true or false")
    return value is True


_CHECKS = {
    "type": _type, "loc": _loc, "id": _id, "section": _section, "version": _version,
    "lastmod": _lastmod, "changefreq": _changefreq, "priority": _priority, "noindex": _noindex,
    "canonical": _canonical,
}  # fmt: skip
