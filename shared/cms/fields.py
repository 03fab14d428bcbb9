"""Read fields of vendors' entries: any value in, a value of the wanted type or an empty one out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shared.errors import DateError
from shared.events.permalinks import lookup
from shared.sitemap import w3c_dates

Fields = Mapping[str, Any]

EMPTY: Fields = {}


def mapping(value: object) -> Fields:
    """Return an object, empty for anything else."""
    return value if isinstance(value, dict) else EMPTY


def items(value: object) -> list[Fields]:
    """Return the objects of an array, none for anything else."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def texts(value: object) -> list[str]:
    """Return the texts of an array, none for anything else."""
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []


def text(fields: object, path: str) -> str:
    """Return the text at a dotted path, empty if there is none."""
    found = lookup(fields, path)
    return found if isinstance(found, str) else ""


def ident(fields: object, path: str) -> str | int | None:
    """Return the id at a dotted path: a text that is not empty, or an integer; else None."""
    found = lookup(fields, path)
    if isinstance(found, str):
        return found or None
    return found if type(found) is int else None


def date(fields: object, path: str) -> str | None:
    """Return the W3C date or time at a dotted path, in the form in which it is published.

    None if there is none; a time without a zone is UTC, as WordPress and Drupal write it.
    """
    given = text(fields, path).replace(" ", "T", 1)
    for form in (given, given + "Z"):
        try:
            return w3c_dates.canonical(form)
        except DateError:
            continue
    return None


def moment(fields: object, path: str) -> int | None:
    """Return the time at a dotted path in milliseconds since 1970, None if there is none."""
    try:
        return w3c_dates.epoch_ms(text(fields, path))
    except DateError:
        return None


def images(addresses: list[str]) -> list[dict[str, str]]:
    """Return the images of a page in the form of an event, at most 100."""
    return [{"loc": loc} for loc in dict.fromkeys(addresses) if loc.startswith("http")][:100]
