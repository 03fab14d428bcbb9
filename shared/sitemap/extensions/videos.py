"""Videos of a page (PROTOCOL V1 to V11): an array of objects with the members of VIDEO.

    {"thumbnail_loc": URL, "title": "...", "description": "...", "content_loc": URL,
     "player_loc": URL, "duration": 600, "expiration_date": "2026-12-31", "rating": 4.5,
     "view_count": 12345, "publication_date": "2026-11-21T10:00:00Z", "tags": ["a", "b"],
     "family_friendly": true, "restriction": {"relationship": "allow", "countries": ["DE", "AT"]},
     "requires_subscription": false, "uploader": {"name": "...", "info": URL},
     "platform": {"relationship": "deny", "platforms": ["tv"]}, "live": false}

`uploader` may be the bare name; countries and platforms may be one text with spaces. Deprecated:
`player_loc` as `{loc, allow_embed, autoplay}`, `category`, `gallery_loc` (a URL or `{loc, title}`),
`price` (an array of `{value, currency, type, resolution}`), `tvshow` (`{show_title, video_type,
episode_title, season_number, episode_number, premier_date}`), `content_segment_loc` (an array of
URLs or `{loc, duration}`), `id` (an array of `{value, type}`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from shared.sitemap import w3c_dates
from shared.sitemap.extensions import elements
from shared.sitemap.extensions.elements import Element
from shared.sitemap.extensions.report import ValueRefusedError, ValueReport
from shared.sitemap.extensions.value_types import (  # fmt: skip
    COUNTRIES,
    PLATFORMS,
    Date,
    Decimal,
    Enumerated,
    Integer,
    Matching,
    Text,
    Url,
    ValueType,
    YesNo,
)

PREFIX = "video"
NAMESPACE = "http://www.google.com/schemas/sitemap-video/1.1"
MAX = 1_000
_MAX_TEXT = 2_048  # ours, where the schema has no limit
_MAX_OLD = 100  # ours, where the schema has no limit
_LONGEST_S = 28_800
_DAY_MS = 86_400_000
_PLACES = ("content_loc", "player_loc")
_DATE = len("2026-11-21")

Video = Mapping[str, Any]


def _currency(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z]{3}", text):
        raise ValueRefusedError("must be the three letters of a currency, as EUR")
    return text.upper()


def _price(found: Mapping[str, str]) -> str:
    if "value" in found and "currency" not in found:
        return "a price with a value needs its currency"
    if "value" not in found and "type" not in found:
        return "a price without a value needs its type, rent or purchase"
    return ""


def _leaf(tag: str, kind: ValueType, rule: str = "PROTOCOL V9", **more: Any) -> Element:
    return Element(tag=tag, kind=kind, rule=rule, **more)


def _list(tag: str, kind: ValueType) -> Element:
    """The element `restriction` or `platform`: places where the video may be seen, or may not."""
    name = "countries" if tag == "restriction" else "platforms"
    return Element(
        tag=tag, rule="PROTOCOL V7",
        text=_leaf("", kind, "PROTOCOL V7", name=name, required=True),
        attributes=(
            _leaf("relationship", Enumerated("allow", "deny"), "PROTOCOL V7", required=True),
        ),
    )  # fmt: skip


_LOC = Url("http", "https", "ftp")
_PLAYER = Element(
    tag="player_loc", rule="PROTOCOL V8",
    text=_leaf("", _LOC, "PROTOCOL V8", name="loc", required=True),
    attributes=(
        _leaf("allow_embed", YesNo(), deprecated=True),
        _leaf("autoplay", Text(_MAX_TEXT), deprecated=True),
    ),
)  # fmt: skip
_SEGMENT = Element(
    tag="content_segment_loc", rule="PROTOCOL V9", deprecated=True, most=_MAX_OLD,
    text=_leaf("", _LOC, name="loc", required=True),
    attributes=(_leaf("duration", Integer(1, _LONGEST_S)),),
)  # fmt: skip
_GALLERY = Element(
    tag="gallery_loc", rule="PROTOCOL V9", deprecated=True,
    text=_leaf("", Url(), name="loc", required=True),
    attributes=(_leaf("title", Text(_MAX_TEXT)),),
)  # fmt: skip
_PRICE = Element(
    tag="price", rule="PROTOCOL V9", deprecated=True, most=_MAX_OLD, check=_price,
    text=_leaf("", Decimal(0), name="value"),
    attributes=(
        _leaf("currency", Matching(_currency, "^[A-Za-z]{3}$")),
        _leaf("type", Enumerated("purchase", "rent")),
        _leaf("resolution", Enumerated("SD", "HD")),
    ),
)  # fmt: skip
_UPLOADER = Element(
    tag="uploader", rule="PROTOCOL V3",
    text=_leaf("", Text(255), "PROTOCOL V3", name="name", required=True),
    attributes=(_leaf("info", Url(), "PROTOCOL V3"),),
)  # fmt: skip
_TVSHOW = Element(
    tag="tvshow", rule="PROTOCOL V9", deprecated=True,
    children=(
        _leaf("show_title", Text(_MAX_TEXT), required=True),
        _leaf(
            "video_type", Enumerated("full", "preview", "clip", "interview", "news", "other"),
            required=True,
        ),
        _leaf("episode_title", Text(_MAX_TEXT)),
        _leaf("season_number", Integer(1)),
        _leaf("episode_number", Integer(1)),
        _leaf("premier_date", Date()),
    ),
)  # fmt: skip
_ID = Element(
    tag="id", rule="PROTOCOL V9", deprecated=True, most=_MAX_OLD,
    text=_leaf("", Text(_MAX_TEXT), name="value", required=True),
    attributes=(
        _leaf(
            "type", required=True,
            kind=Enumerated(
                "tms:series", "tms:program", "rovi:series", "rovi:program", "freebase", "url"
            ),
        ),
    ),
)  # fmt: skip

VIDEO = Element(
    tag="video", name="videos", rule="PROTOCOL V11", most=MAX,
    children=(
        _leaf("thumbnail_loc", Url(), "PROTOCOL V1", required=True),
        _leaf("title", Text(100), "PROTOCOL V3", required=True, missing="PROTOCOL V1"),
        _leaf("description", Text(2_048), "PROTOCOL V3", required=True, missing="PROTOCOL V1"),
        _leaf("content_loc", _LOC, "PROTOCOL V8"),
        _PLAYER,
        _leaf("duration", Integer(1, _LONGEST_S), "PROTOCOL V4"),
        _leaf("expiration_date", Date(counted=True), "PROTOCOL V6"),
        _leaf("rating", Decimal(0, 5), "PROTOCOL V5"),
        _SEGMENT,
        _leaf("view_count", Integer(0), "PROTOCOL V5"),
        _leaf("publication_date", Date(), "PROTOCOL V6"),
        _leaf("tag", Text(_MAX_TEXT), "PROTOCOL V2", name="tags", most=32),
        _leaf("category", Text(256), deprecated=True),
        _leaf("family_friendly", YesNo(), "PROTOCOL V5"),
        _list("restriction", COUNTRIES),
        _GALLERY,
        _PRICE,
        _leaf("requires_subscription", YesNo(), "PROTOCOL V5"),
        _UPLOADER,
        _TVSHOW,
        _list("platform", PLATFORMS),
        _leaf("live", YesNo(), "PROTOCOL V5"),
        _ID,
    ),
)  # fmt: skip
"""In the order of the XSD (PROTOCOL V2)."""


def take(
    value: object, report: ValueReport, *, loc: str | None, deprecated: bool
) -> tuple[Video, ...]:
    """The videos of a JSON value on the page at `loc`; faults go to `report`."""
    if value is None:
        return ()
    found = elements.take(VIDEO, value, report, VIDEO.name, deprecated=deprecated) or ()
    # `found` leaves out values that are no video: then the positions differ.
    if found and isinstance(value, (list, tuple)) and len(found) == len(value):
        for number, (given, video) in enumerate(zip(value, found, strict=True)):
            _check(given, video, report, f"{VIDEO.name}[{number}]", loc)
    return tuple(found)


def _check(given: Video, video: Video, report: ValueReport, where: str, loc: str | None) -> None:
    if all(given.get(name) is None for name in _PLACES):
        report.fault(where, "PROTOCOL V1", "give content_loc, or player_loc, or both")
    for name in _PLACES:
        if loc is not None and _text(video.get(name), "loc") == loc:
            detail = "is the address of the page: give that of the video or of its player"
            report.fault(f"{where}.{name}", "PROTOCOL V8", detail)
    path = urlsplit(video.get("content_loc", "")).path.lower()
    if path.endswith((".html", ".htm", ".swf")):
        detail = "content_loc looks like a page or Flash: it must be the file of the video"
        report.warn(f"{where}.content_loc", "PROTOCOL V8", detail)
    uploader = video.get("uploader")
    info = uploader.get("info") if isinstance(uploader, dict) else None
    if info and loc is not None and not _related(info, loc):
        detail = f"must be on the domain of the page, {urlsplit(loc).hostname}"
        report.fault(f"{where}.uploader.info", "PROTOCOL V3", detail)


def _text(value: Any, name: str) -> str | None:
    """The text of an element that may be bare text."""
    return value.get(name) if isinstance(value, dict) else value


def _related(one: str, other: str) -> bool:
    """True if one host is the other or below its domain; a leading `www.` is ignored."""
    a, b = ((urlsplit(url).hostname or "").removeprefix("www.") for url in (one, other))
    return a == b or a.endswith(f".{b}") or b.endswith(f".{a}")


def expires_ms(value: Video) -> int | None:
    """Time from which a video is not available, in milliseconds since 1970 (PROTOCOL V6).

    A date alone is its last day, UTC. None if it does not expire.
    """
    date = value.get("expiration_date")
    if date is None:
        return None
    return w3c_dates.epoch_ms(date) + (_DAY_MS if len(date) == _DATE else 0)


def render(videos: tuple[Video, ...]) -> str:
    """The `<video:video>` elements of canonical videos."""
    return elements.render(PREFIX, VIDEO, videos)


def read(xml: str) -> tuple[Video, ...]:
    """The videos in a fragment, as `render` wrote them."""
    return tuple(elements.read(PREFIX, VIDEO, xml))
