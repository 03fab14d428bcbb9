"""Permalinks: the address of a page, made from the fields of a CMS's payload by a template.

`/{locale}/blog/{published_at:%Y/%m}/{slug}` names fields of the payload, with dots for nested
fields (`{category.slug}`), and for a date the parts to use. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import quote

from shared.errors import SitemapdError

DATE_CODES = "YymdjH"
"""Codes that may follow a % in a template; all give numbers, whatever the language."""

_PLACE = re.compile(r"\{([A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*)(?::([^{}]*))?\}")
_DATE = re.compile(rf"(?:[^%]|%[{DATE_CODES}])+")
_ABSOLUTE = re.compile(r"https?://[^/{}]+/")
_MANY = "path"


class PermalinkError(SitemapdError):
    """A page address that cannot be made from the payload."""


class _Place(NamedTuple):
    path: str
    form: str | None


@lru_cache(maxsize=1_024)
def check(template: str) -> tuple[str | _Place, ...]:
    """The parts of a template. Raises ValueError that states the fault."""
    if not template.startswith("/") and not _ABSOLUTE.match(template):
        raise ValueError(f"{template!r} must begin with / or with https://host/")
    parts: list[str | _Place] = []
    end = 0
    for match in _PLACE.finditer(template):
        path, form = match.groups()
        if form is not None and not _DATE.fullmatch(form):
            known = " ".join(f"%{code}" for code in DATE_CODES)
            raise ValueError(f"{template!r}: {form!r} is no form of a date; known: {known}")
        parts += [template[end : match.start()], _Place(path, form)]
        end = match.end()
    parts.append(template[end:])
    if any(isinstance(part, str) and set(part) & set("{}") for part in parts):
        raise ValueError(f"{template!r}: a field is written {{slug}}, {{a.b}} or {{date:%Y/%m}}")
    return tuple(parts)


def render(template: str, fields: Mapping[str, object]) -> str:
    """The address for `fields`: a path from the root of the host, or a URL, as the template is.

    Values are texts, not parts of URLs: characters that a path cannot hold are escaped, slashes
    stay. Raises PermalinkError that names the missing or unusable field.
    """
    made = "".join(
        part if isinstance(part, str) else _value(part, fields, template)
        for part in check(template)
    )
    root = _ABSOLUTE.match(made)
    start = root.end() - 1 if root else 0
    # A slug that is empty or begins with a slash must not double the one before it.
    return made[:start] + re.sub(r"/{2,}", "/", made[start:])


def lookup(fields: object, path: str) -> object:
    """The value at a dotted path of objects and arrays, None if there is none."""
    found = fields
    for step in path.split("."):
        if isinstance(found, Mapping):
            found = found.get(step)
        elif isinstance(found, list) and step.isascii() and step.isdigit() and len(step) < 4:
            found = found[int(step)] if int(step) < len(found) else None
        else:
            return None
    return found


def _value(place: _Place, fields: Mapping[str, object], template: str) -> str:
    found = lookup(fields, place.path)
    text = str(found) if isinstance(found, (str, int)) and not isinstance(found, bool) else ""
    if not text.strip():
        raise PermalinkError(f"the payload has no {place.path}, which {template} needs")
    if place.form is None:
        return quote(text, safe="/", errors="replace")
    try:
        return datetime.fromisoformat(text).strftime(place.form)
    except ValueError:
        raise PermalinkError(f"{place.path} is no date, as {template} needs") from None


@lru_cache(maxsize=256)
def pattern(text: str) -> re.Pattern[str]:
    """The regular expression of `content/{lang}/{slug}.md`; `{slug:path}` may hold slashes.

    Raises ValueError for braces that name no field.
    """
    made, end, names = "", 0, set()
    for match in _PLACE.finditer(text):
        name, form = match.groups()
        if not name.isidentifier() or name in names or form not in {None, _MANY}:
            raise ValueError(f"{text!r}: write {{name}} once, or {{name:path}} for several folders")
        names.add(name)
        made += re.escape(text[end : match.start()])
        made += f"(?P<{name}>{'.+' if form else '[^/]+'})"
        end = match.end()
    rest = text[end:]
    if set(re.sub(_PLACE, "", text)) & set("{}"):
        raise ValueError(f"{text!r}: write {{name}} once, or {{name:path}} for several folders")
    return re.compile(made + re.escape(rest))
