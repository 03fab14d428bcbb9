"""Codes of languages, scripts and countries, by the ISO lists that pycountry ships.

The lists are read for the first code, or by `load`: 0.02 s. pycountry itself, which makes an object
of each entry, takes ten times as long and 12 MB, and is not imported.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from shared.sitemap.extensions.report import ValueRefusedError

X_DEFAULT = "x-default"
HREFLANG_PATTERN = (
    r"^([A-Za-z]{2}(-[A-Za-z]{4})?(-[A-Za-z]{2})?|[Xx]-[Dd][Ee][Ff][Aa][Uu][Ll][Tt])$"
)
NEWS_PATTERN = r"^([A-Za-z]{2,3}|[Zz][Hh]-([Cc][Nn]|[Tt][Ww]))$"
_SHOWN = 40  # characters of a refused code in its message

_MEANT = {
    "cn": "zh", "cz": "cs", "dk": "da", "gr": "el", "in": "id", "iw": "he", "ji": "yi",
    "jp": "ja", "jw": "jv", "kr": "ko", "ua": "uk", "vn": "vi",
}  # fmt: skip
"""Codes of countries, and withdrawn ones, that are often written in place of a language code."""


class _Codes(NamedTuple):
    languages: frozenset[str]  # ISO 639-1, two letters
    shorter: dict[str, str]  # ISO 639-2 and -3, three letters, to ISO 639-1 where there is one
    scripts: frozenset[str]  # ISO 15924, Title case
    countries: frozenset[str]  # ISO 3166-1 alpha-2, upper case


@lru_cache(1)
def _codes() -> _Codes:
    two: set[str] = set()
    three: dict[str, str] = {}
    for language in _entries("639-3"):
        short = language.get("alpha_2", "")
        two.add(short)
        three[language["alpha_3"]] = short
        if bibliographic := language.get("bibliographic", ""):
            three[bibliographic] = short
    return _Codes(
        frozenset(two - {""}),
        three,
        frozenset(script["alpha_4"] for script in _entries("15924")),
        frozenset(country["alpha_2"] for country in _entries("3166-1")),
    )


def _entries(standard: str) -> Sequence[Mapping[str, str]]:
    """The entries of an ISO standard in the files of pycountry."""
    package = find_spec("pycountry")
    assert package is not None
    assert package.submodule_search_locations
    path = Path(package.submodule_search_locations[0], "databases", f"iso{standard}.json")
    found: Sequence[Mapping[str, str]] = json.loads(path.read_text(encoding="utf-8"))[standard]
    return found


def load() -> None:
    """Load the lists now."""
    _codes()


@lru_cache(1024)
def hreflang(text: str) -> str:
    """The canonical form of a code of `hreflang` (PROTOCOL H4): `en`, `zh-Hant-TW`, `x-default`.

    A language of ISO 639-1, then optionally a script of ISO 15924, then optionally a country of
    ISO 3166-1, in any letter case. Raises ValueRefusedError with the remedy.
    """
    if text.lower() == X_DEFAULT:
        return X_DEFAULT
    if "_" in text:
        raise _refused(text, f"write hyphens: {text[:_SHOWN].replace('_', '-')}")
    language, *rest = text.split("-")
    found = [_language(text, language.lower())]
    if rest and len(rest[0]) == 4:
        found.append(_script(text, rest.pop(0).title()))
    if rest:
        found.append(_region(text, found[0], rest.pop(0).upper()))
    if rest:
        raise _refused(
            text, "nothing may follow the country; a script stands before it, zh-Hant-TW"
        )
    return "-".join(found)


def _language(text: str, code: str) -> str:
    codes = _codes()
    if code in codes.languages:
        return code
    if code in _MEANT:
        raise _refused(text, f"{code} is no language of ISO 639-1: write {_MEANT[code]}")
    if shorter := codes.shorter.get(code):
        raise _refused(text, f"use the two letters of ISO 639-1: {shorter}")
    if code.upper() in codes.countries:
        raise _refused(
            text, f"a country alone is not allowed: put a language first, en-{code.upper()}"
        )
    raise _refused(text, "it must begin with a language of ISO 639-1, as en or zh-Hant")


def _script(text: str, code: str) -> str:
    if code not in _codes().scripts:
        raise _refused(text, f"{code[:_SHOWN]} is no script of ISO 15924, as Latn or Hant")
    return code


def _region(text: str, language: str, code: str) -> str:
    if code in _codes().countries:
        return code
    if code == "UK":
        raise _refused(text, f"the United Kingdom is GB in ISO 3166-1: write {language}-GB")
    if code.isdecimal():
        detail = "regions by number are not read: name each country, as es-MX, or the language"
        raise _refused(text, f"{detail} alone, {language}")
    raise _refused(
        text,
        f"{code[:_SHOWN]} is no country of ISO 3166-1: name a country, or the language alone,"
        f" {language}",
    )


@lru_cache(256)
def news_language(text: str) -> str:
    """The language of a news publication (PROTOCOL W6): two or three letters of ISO 639.

    Chinese may also be `zh-cn` or `zh-tw`. Raises ValueRefusedError with the remedy.
    """
    code = text.lower()
    if code in {"zh-cn", "zh-tw"}:
        return code
    codes = _codes()
    if code in codes.languages or code in codes.shorter:
        return code
    first = re.split(r"[-_]", code)[0]
    if first == "zh" and len(code) > 2:
        raise _refused(text, "write zh-cn for simplified, zh-tw for traditional Chinese")
    if first != code and (first in codes.languages or first in codes.shorter):
        raise _refused(text, f"write the language alone: {first}")
    if first in _MEANT:
        raise _refused(text, f"{first} is no language of ISO 639: write {_MEANT[first]}")
    raise _refused(text, "send the two or three letters of a language in ISO 639, as en")


def country(text: str) -> str:
    """The canonical form of a country of ISO 3166-1 alpha-2. Raises ValueRefusedError."""
    code = text.upper()
    if code in _codes().countries:
        return code
    if code == "UK":
        raise _refused(text, "the United Kingdom is GB in ISO 3166-1")
    raise _refused(text, "send the two letters of a country in ISO 3166-1, as DE")


def _refused(text: str, why: str) -> ValueRefusedError:
    shown = text if len(text) <= _SHOWN else text[:_SHOWN] + "..."
    return ValueRefusedError(f"{shown!a} is not accepted: {why}")
