"""Leave out of a page what is wrong with it, as little as makes it right."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from shared.errors import Fault, InvalidError
from shared.events import Event

SOFT = (
    "lastmod", "changefreq", "priority", "images", "videos", "news", "alternates",
)  # fmt: skip
"""Members that a page can do without."""

Path = tuple[str | int, ...]
_STEP = re.compile(r"\[(\d+)\]|([^.\[\]]+)")


def _path(field: str) -> Path:
    return tuple(int(place) if place else name for place, name in _STEP.findall(field))


def _value(path: Path) -> Path:
    """The very value; of an alternate the whole, which is nothing without a part."""
    return path[:2] if path[0] == "alternates" else path


def _item(path: Path) -> Path:
    """The image or video that the value is of; of news the whole."""
    return path[:2] if len(path) > 1 and isinstance(path[1], int) else path[:1]


def _member(path: Path) -> Path:
    return path[:1]


_CUTS: tuple[Callable[[Path], Path], ...] = (_value, _item, _member)
"""What to leave out at the first, second and third attempt."""


def salvage(
    members: Mapping[str, Any], take: Callable[[Mapping[str, Any]], Event]
) -> tuple[Event, dict[str, Fault]]:
    """What `take` makes of `members`, and each part that had to be left out, with its fault.

    Raises InvalidError with the faults that no page can be without.
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
            # An image without its address goes for what was wrong with that.
            first = [gone.pop(part) for part in list(gone) if part[: len(path)] == path]
            new.setdefault(path, first[0] if first else fault)
        members = _pruned(members, (), new)
        gone |= new
    return take(members), _named(gone)


def _is_soft(fault: Fault, members: Mapping[str, Any]) -> bool:
    """Whether the page of `members` would be right without what is at fault."""
    name = _path(fault.field)[:1]
    return bool(name) and name[0] in SOFT and name[0] in members


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
