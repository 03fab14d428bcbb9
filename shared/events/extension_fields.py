"""Checks of the members of an event that extend a page, on receipt and when read from storage."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from shared.events import event_fields as core
from shared.events.event_fields import EventFields
from shared.sitemap.extensions import alternates, images, news, videos
from shared.sitemap.extensions.alternates import Alternates
from shared.sitemap.extensions.languages import HREFLANG_PATTERN, X_DEFAULT, hreflang
from shared.sitemap.extensions.report import ValueRefusedError, ValueReport
from shared.sitemap.extensions.value_types import Date, Text, ValueType

MAX_TITLE = 500
TITLE, PUBLISHED, MOMENT = Text(MAX_TITLE), Date(), Date(counted=True)

_DATE = len("2026-11-23")

MAX_LANGS = 32
"""Languages of one page: `en`, `en-GB`, `x-default` and the like. Our own limit."""

PUBLISHED_MEMBERS = ("images", "videos", "news", "alternates")
"""Members that make a fragment longer."""

TIMED_MEMBERS = ("publish_at", "expires")
"""Members of an event that takes effect later than it arrives."""

LANG_SCHEMA = {
    "anyOf": [
        {"type": "string", "pattern": HREFLANG_PATTERN},
        {
            "type": "array",
            "maxItems": MAX_LANGS,
            "items": {"type": "string", "pattern": HREFLANG_PATTERN},
        },
        {"type": "null"},
    ],
    "description": "the languages this page is the version for: `en`, or `[en, x-default]`",
}


def _images(members: EventFields) -> tuple[Mapping[str, Any], ...]:
    return images.take(members.item["images"], members, deprecated=members.rules.deprecated)


def _videos(members: EventFields) -> tuple[Mapping[str, Any], ...]:
    given, deprecated = members.item["videos"], members.rules.deprecated
    return videos.take(given, members, loc=members.loc, deprecated=deprecated)


def _news(members: EventFields) -> Mapping[str, Any] | None:
    given = members.item["news"]
    if given is not None and not members.rules.news:
        members.fault(
            "news", "PROTOCOL W11",
            "no section of this site is for news: set news = true for one, as in"
            " [sites.NAME.sections.news]",
        )  # fmt: skip
    return news.take(given, members, deprecated=members.rules.deprecated)


def _alternates(members: EventFields) -> Alternates:
    return alternates.take(members.item["alternates"], members, loc=members.loc)


def _group(members: EventFields) -> str | None:
    group = core.ident(members, "group")
    if group is None:
        return None
    if members.item.get("alternates"):
        members.fault(
            "group", "PROTOCOL H2",
            "excludes alternates: send the group and let the others be found, or list them all",
        )  # fmt: skip
    if not members.item.get("lang"):
        members.fault("lang", "PROTOCOL H1", "a page of a group needs its language, as en")
    return group


def _lang(members: EventFields) -> tuple[str, ...]:
    value = members.item["lang"]
    if value is None:
        return ()
    codes = value if isinstance(value, list) else [value]
    if len(codes) > MAX_LANGS:
        members.fault("lang", "length", f"{len(codes)} languages, at most {MAX_LANGS} are taken")
        return ()
    found = set()
    for number, code in enumerate(codes):
        where = f"lang[{number}]" if codes is value else "lang"
        if not isinstance(code, str):
            members.fault(where, "type", "must be a code as en, or an array of them")
            continue
        try:
            found.add(hreflang(code))
        except ValueRefusedError as error:
            members.fault(where, "PROTOCOL H4", error.detail)
    return _sorted(found)


def _sorted(codes: set[str]) -> tuple[str, ...]:
    return tuple(sorted(codes, key=lambda code: (code == X_DEFAULT, code)))


def _leaf(name: str, kind: ValueType, rule: str) -> Callable[[EventFields], str | None]:
    def check(members: EventFields) -> str | None:
        value = members.item[name]
        if value is None:
            return None
        try:
            return kind.take(value, lambda warning: members.warn(name, "PROTOCOL F4", warning))
        except ValueRefusedError as error:
            members.fault(name, error.rule or rule, error.detail)
            return None

    return check


CHECKS: Mapping[str, Callable[[EventFields], object]] = {
    "images": _images, "videos": _videos, "news": _news, "alternates": _alternates,
    "group": _group, "lang": _lang,
    "published": _leaf("published", PUBLISHED, "PROTOCOL M1"),
    "title": _leaf("title", TITLE, "length"),
    **{name: _leaf(name, MOMENT, "PROTOCOL M1") for name in TIMED_MEMBERS},
}  # fmt: skip


def taken(members: EventFields, kind: object) -> dict[str, Any]:
    """The extensions of an event of `kind`, by name."""
    values: dict[str, Any] = {
        name: check(members) for name, check in CHECKS.items() if name in members.item
    }
    appears, leaves = (values.get(name) for name in TIMED_MEMBERS)
    if (appears or leaves) and kind != "upsert":
        name = "publish_at" if appears else "expires"
        members.fault(name, "event-type", "only an upsert has one: a delete takes effect at once")
    elif appears and leaves and _is_over_before(leaves, appears):
        members.fault("expires", "order", f"must be later than publish_at, {appears}")
    return values


def _is_over_before(leaves: str, appears: str) -> bool:
    """True if `leaves`, of which a date is its whole day, does not lie after `appears`."""
    return leaves < appears[:_DATE] if len(leaves) == _DATE else leaves <= appears


def restore(stored: dict[str, Any]) -> None:
    """Restore the extensions of a stored event to their canonical form, in place.

    Raises ValueError for values that were not accepted: nothing else may get into a file,
    whatever program wrote it into the store (RELIABILITY T14).
    """
    report, loc = ValueReport(), stored.get("loc")
    taken: dict[str, Any] = {
        "images": lambda value: images.take(value, report, deprecated=True),
        "videos": lambda value: videos.take(value, report, loc=loc, deprecated=True),
        "news": lambda value: news.take(value, report, deprecated=True),
        "alternates": lambda value: _pairs(value, report),
        "lang": lambda value: _sorted(set(map(hreflang, value))),
        "published": lambda value: PUBLISHED.take(value, _unsound),
        "title": lambda value: TITLE.take(value, _unsound),
        **dict.fromkeys(TIMED_MEMBERS, lambda value: MOMENT.take(value, _unsound)),
        "group": _encodable,
    }
    for name in taken.keys() & stored.keys():
        given = stored[name]
        if given is None:
            continue
        try:
            value = taken[name](given)
        except ValueRefusedError as error:
            raise ValueError(f"{name}: {error}") from error
        if report.faults or _plain(value) != given:
            raise ValueError(f"{name}: not as it was accepted")
        stored[name] = value


def _pairs(value: Any, report: ValueReport) -> Alternates:
    return alternates.take([{"hreflang": code, "href": href} for code, href in value], report)


def _plain(value: Any) -> Any:
    """`value` as JSON returns it."""
    return [_plain(each) for each in value] if isinstance(value, tuple) else value


def _encodable(text: str) -> str:
    text.encode()
    return text


def _unsound(reason: str) -> None:
    raise ValueError(reason)
