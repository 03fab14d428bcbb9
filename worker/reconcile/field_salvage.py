"""Removal of invalid parts of a page, as few as make it valid."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from shared.errors import Fault, InvalidError
from shared.events.event import Event
from shared.sitemap.extensions import alternates, images, videos
from shared.sitemap.extensions.elements import Element

SOFT = (
    "lastmod", "changefreq", "priority", "images", "videos", "news", "alternates",
)  # fmt: skip
"""Fields of a SourceRecord that its page can do without."""

_ALSO_SOFT = ("title", "published", "publish_at", "expires")

Path = tuple[str | int, ...]
_STEP = re.compile(r"\[(\d+)\]|([^.\[\]]+)")


def _path(field: str) -> Path:
    return tuple(int(place) if place else name for place, name in _STEP.findall(field))


def _value(path: Path) -> Path:
    """Return the path of the value itself; of an alternate the whole, which is useless in part."""
    return path[:2] if path[0] == "alternates" else path


def _item(path: Path) -> Path:
    """Return the path of the image or video with the value; of news the whole."""
    return path[:2] if len(path) > 1 and isinstance(path[1], int) else path[:1]


def _member(path: Path) -> Path:
    return path[:1]


_CUTS: tuple[Callable[[Path], Path], ...] = (_value, _item, _member)
"""Parts to remove at the first, second and third attempt."""


_LISTS = {"images": images.IMAGE, "videos": videos.VIDEO}


def shortened(members: Mapping[str, Any], gone: Callable[[str, Fault], None]) -> Mapping[str, Any]:
    """Return `members` with lists cut to their allowed length; `gone` is called for each cut."""
    kept = {
        name: _shortened(element, members[name], name, gone)
        for name, element in _LISTS.items()
        if members.get(name)
    }
    links = members.get(alternates.FIELD)
    if isinstance(links, (list, tuple)) and len(links) > alternates.MAX:
        kept[alternates.FIELD] = _cut(links, alternates.MAX, alternates.FIELD, "H2", gone)
    return {**members, **kept} if kept else members


def _shortened(element: Element, value: Any, where: str, gone: Callable[[str, Fault], None]) -> Any:
    if element.most and isinstance(value, (list, tuple)):
        if len(value) > element.most:
            value = _cut(value, element.most, where, element.rule, gone)
        return [
            _members_shortened(element, each, f"{where}[{place}]", gone)
            for place, each in enumerate(value)
        ]
    return _members_shortened(element, value, where, gone)


def _members_shortened(
    element: Element, value: Any, where: str, gone: Callable[[str, Fault], None]
) -> Any:
    if not isinstance(value, Mapping):
        return value
    lists = {part.name: part for part in element.children if part.most}
    return {
        name: _shortened(lists[name], each, f"{where}.{name}", gone) if name in lists else each
        for name, each in value.items()
    }


def _cut(
    value: Sequence[Any], most: int, where: str, rule: str, gone: Callable[[str, Fault], None]
) -> Sequence[Any]:
    detail = f"{len(value)} given, at most {most} are allowed: the first {most} were taken"
    gone(where, Fault(where, rule, detail))
    return value[:most]


def salvage(
    members: Mapping[str, Any], take: Callable[[Mapping[str, Any]], Event]
) -> tuple[Event, dict[str, Fault]]:
    """Return the event that `take` makes of `members`, and each removed part with its fault.

    Raises InvalidError with the faults of parts that every page needs.
    """
    gone: dict[Path, Fault] = {}
    for cut in _CUTS:
        try:
            return take(members), _named(gone)
        except InvalidError as error:
            hard = [fault for fault in error.faults if not _is_soft(fault, members)]
            if hard:
                raise InvalidError(*hard) from None
            faults = error.faults
        new: dict[Path, Fault] = {}
        for fault in faults:
            path = cut(_path(fault.field))
            # An image removed for its missing address keeps the fault of the address.
            first = [gone.pop(part) for part in list(gone) if part[: len(path)] == path]
            new.setdefault(path, first[0] if first else fault)
        members = _pruned(members, (), new)
        gone |= new
    return take(members), _named(gone)


def _is_soft(fault: Fault, members: Mapping[str, Any]) -> bool:
    """Return True if the page of `members` would be valid without the faulty part."""
    name = _path(fault.field)[:1]
    return bool(name) and name[0] in (*SOFT, *_ALSO_SOFT) and name[0] in members


def _pruned(value: Any, path: Path, gone: Mapping[Path, Fault]) -> Any:
    if isinstance(value, Mapping):
        return {
            name: _pruned(each, (*path, name), gone)
            for name, each in value.items()
            if (*path, name) not in gone
        }
    if isinstance(value, (list, tuple)):
        return [
            _pruned(each, (*path, place), gone)
            for place, each in enumerate(value)
            if (*path, place) not in gone
        ]
    return value


def _named(gone: Mapping[Path, Fault]) -> dict[str, Fault]:
    return {_name(path): fault for path, fault in gone.items()}


def _name(path: Path) -> str:
    said = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return said.removeprefix(".")
