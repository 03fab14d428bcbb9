"""Types of leaf values: the JSON values accepted for them, and the one text that is published.

Each type has `take`, which returns the canonical text (its own canonical form) or raises
ValueRefusedError with a remedy, and `schema`, the same for OpenAPI.
"""

from __future__ import annotations

import decimal
import re
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from shared.errors import DateError, UrlError
from shared.sitemap import urls, w3c_dates
from shared.sitemap.extensions import languages
from shared.sitemap.extensions.report import ValueRefusedError
from shared.sitemap.urls import MAX_LENGTH
from shared.sitemap.xml_text import legal, one_line

Schema = dict[str, Any]
Warn = Callable[[str], None]

_DATE = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
_TIME = r"[0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]+)?)?(Z|[+-][0-9]{2}:[0-9]{2})"
W3C = f"^{_DATE}(T{_TIME})?$"

LARGEST = 10**18 - 1
"""Maximum of numbers without a limit of their own."""

STRIPPED = "characters that XML cannot hold were removed (PROTOCOL F4)"


class ValueType(Protocol):
    """One type of value."""

    @property
    def schema(self) -> Schema:
        """JSON Schema of what `take` accepts; it may be wider than `take`, never narrower."""

    def take(self, value: object, warn: Warn) -> str:
        """The canonical text of `value`; `warn` is called with each change of its meaning.

        Raises ValueRefusedError.
        """


def string(value: object) -> str:
    """Return `value` if it is a string. Raises ValueRefusedError for others."""
    if isinstance(value, str):
        return value
    raise ValueRefusedError("must be a string", "type")


class Url:
    """An absolute URL on any host (PROTOCOL L1 to L4)."""

    def __init__(self, *schemes: str) -> None:
        self._schemes = schemes or ("http", "https")
        self.schema: Schema = {"type": "string", "format": "uri", "maxLength": MAX_LENGTH}

    def take(self, value: object, warn: Warn) -> str:  # noqa: ARG002  nothing is lost
        """The canonical URL (shared.sitemap.urls). Raises ValueRefusedError."""
        try:
            return urls.absolute(string(value), self._schemes)
        except UrlError as error:
            raise ValueRefusedError(error.detail, f"PROTOCOL {error.rule}") from None


class Text:
    """Readable text of at most `most` characters, on one line."""

    def __init__(self, most: int) -> None:
        self._most = most
        self.schema: Schema = {"type": "string", "minLength": 1}

    def take(self, value: object, warn: Warn) -> str:
        """The text without characters that no XML can hold, with single spaces for white space.

        Raises ValueRefusedError.
        """
        text = string(value)
        clean = legal(text)
        if clean != text:
            warn(STRIPPED)
        clean = one_line(clean)
        if not clean:
            raise ValueRefusedError("is empty: send text")
        if len(clean) > self._most:
            raise ValueRefusedError(f"{len(clean)} characters, at most {self._most} are allowed")
        return clean


class Integer:
    """A whole number from `least` to `most`, as a number or its digits."""

    _DIGITS = re.compile(r"[0-9]{1,18}", re.ASCII)

    def __init__(self, least: int, most: int = LARGEST) -> None:
        self._least, self._most = least, most
        self.schema: Schema = {
            "anyOf": [
                {"type": "integer", "minimum": least, "maximum": most},
                {"type": "string", "pattern": "^[0-9]{1,18}$"},
            ]
        }

    def take(self, value: object, warn: Warn) -> str:  # noqa: ARG002  nothing is lost
        """The decimal digits. Raises ValueRefusedError."""
        if isinstance(value, str) and self._DIGITS.fullmatch(value):
            value = int(value)
        if type(value) is int and self._least <= value <= self._most:
            return str(value)
        upper = " of at most 18 digits" if self._most == LARGEST else f" to {self._most}"
        raise ValueRefusedError(f"must be a whole number from {self._least}{upper}")


_PLACES = 16


class Decimal:
    """A decimal from `least` to `most`, as a number or a text without an exponent."""

    _PATTERN = r"\+?(?:([0-9]{1,18})(?:\.([0-9]{0,16}))?|\.([0-9]{1,16}))"
    _TEXT = re.compile(_PATTERN, re.ASCII)

    def __init__(self, least: int, most: int = LARGEST) -> None:
        self._least, self._most = least, most
        self.schema: Schema = {
            "anyOf": [
                {"type": "number", "minimum": least, "maximum": most},
                {"type": "string", "pattern": f"^{self._PATTERN}$"},
            ]
        }

    def take(self, value: object, warn: Warn) -> str:  # noqa: ARG002  nothing is lost
        """The decimal with at least one digit after the point and no further trailing zeros.

        Raises ValueRefusedError.
        """
        if type(value) is int and self._least <= value <= self._most:
            value = str(value)
        elif type(value) is float:
            value = _digits(value)
        match = self._TEXT.fullmatch(value) if isinstance(value, str) else None
        if match:
            whole, fraction = int(match[1] or 0), (match[2] or match[3] or "").rstrip("0")
            above = whole - (not fraction) >= self._most if self._most != LARGEST else False
            if whole >= self._least and not above:
                return f"{whole}.{fraction or '0'}"
        upper = " of at most 18 digits" if self._most == LARGEST else f" to {self._most}"
        raise ValueRefusedError(f"must be a decimal from {self._least}{upper}, as 4.5")


def _digits(value: float) -> str:
    """The shortest digits of `value`, 4.2 and not 4.2000000000000002; no exponent."""
    shortest = format(decimal.Decimal(repr(value)), "f")
    return shortest if len(shortest.partition(".")[2]) <= _PLACES else f"{value:.{_PLACES}f}"


class YesNo:
    """True or false, published as `yes` or `no`."""

    _TEXTS = ("yes", "no", "Yes", "No", "YES", "NO")
    schema: Schema = {"enum": [True, False, *_TEXTS]}

    def take(self, value: object, warn: Warn) -> str:  # noqa: ARG002  nothing is lost
        """The text `yes` or `no`. Raises ValueRefusedError."""
        if isinstance(value, bool):
            return "yes" if value else "no"
        if isinstance(value, str) and value in self._TEXTS:
            return value.lower()
        raise ValueRefusedError("must be true or false, or the text yes or no")


class Date:
    """A W3C date or datetime; with `counted`, one of 1970 or later."""

    schema: Schema = {"type": "string", "pattern": W3C}

    def __init__(self, *, counted: bool = False) -> None:
        self._counted = counted

    def take(self, value: object, warn: Warn) -> str:  # noqa: ARG002  nothing is lost
        """The date as shared.sitemap.w3c_dates publishes it. Raises ValueRefusedError."""
        text = string(value)
        try:
            if self._counted:
                w3c_dates.epoch_ms(text)
            return w3c_dates.canonical(text)
        except DateError as error:
            raise ValueRefusedError(str(error), "PROTOCOL M1") from None


class Enumerated:
    """One of `names`, which are the published form, in any letter case."""

    def __init__(self, *names: str) -> None:
        self.names: Mapping[str, str] = {name.lower(): name for name in names}
        self.schema: Schema = {"type": "string", "pattern": _any_case(names)}

    def take(self, value: object, warn: Warn) -> str:  # noqa: ARG002  nothing is lost
        """The published form of the name. Raises ValueRefusedError."""
        found = self.names.get(value.lower()) if isinstance(value, str) else None
        if found is None:
            raise ValueRefusedError(f"must be one of {', '.join(self.names.values())}")
        return found


class Several:
    """A list of codes, each made canonical by `one`, published in one text with `joint` between.

    The value is an array or such a text. Duplicates are removed; the codes are sorted unless
    `ordered`.
    """

    def __init__(
        self, one: Callable[[str], str], joint: str = " ", *, most: int = 300, ordered: bool = False
    ) -> None:
        self._one, self._joint, self._most, self._ordered = one, joint, most, ordered
        self.schema: Schema = {
            "anyOf": [
                {"type": "string", "minLength": 1},
                {"type": "array", "minItems": 1, "items": {"type": "string"}},
            ]
        }

    def take(self, value: object, warn: Warn) -> str:  # noqa: ARG002  nothing is lost
        """The canonical codes, joined. Raises ValueRefusedError."""
        codes = (
            value if isinstance(value, list) else string(value).split(self._joint.strip() or None)
        )
        found = list(dict.fromkeys(self._one(string(code).strip()) for code in codes[:1000]))
        if not found:
            raise ValueRefusedError("is empty: name at least one")
        if len(codes) > 1000 or len(found) > self._most:
            raise ValueRefusedError(f"names {len(codes)}, at most {self._most} are allowed")
        return self._joint.join(found if self._ordered else sorted(found))


class Matching:
    """Text that `check` makes canonical; `pattern` is its form in JSON Schema."""

    def __init__(self, check: Callable[[str], str], pattern: str) -> None:
        self._check = check
        self.schema: Schema = {"type": "string", "pattern": pattern}

    def take(self, value: object, warn: Warn) -> str:  # noqa: ARG002  nothing is lost
        """The canonical text that `check` returns. Raises ValueRefusedError."""
        return self._check(string(value))


def one_of(*names: str) -> Callable[[str], str]:
    """A check for one of `names`, in any letter case, for Several."""
    choice = Enumerated(*names)
    return lambda text: choice.take(text, lambda _: None)


def _any_case(names: tuple[str, ...]) -> str:
    letters = ("".join(f"[{c.upper()}{c.lower()}]" if c.isalpha() else c for c in n) for n in names)
    return f"^({'|'.join(letters)})$"


COUNTRIES = Several(languages.country)
PLATFORMS = Several(one_of("web", "mobile", "tv"))
