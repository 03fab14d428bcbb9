"""Templates: shipped files that are valid as they are, with the values of an example host."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

DEPLOY = Path(__file__).resolve().parents[1]

_MARKED = re.compile(r"(?m)^(?P<indent> *)[^#\n]*;  # <- (?P<name>.+)\n")


def shipped(*parts: str) -> str:
    """Return the text of a file in deploy/."""
    return DEPLOY.joinpath(*parts).read_text(encoding="utf-8")


def fill(text: str, values: Mapping[str, str]) -> str:
    """Replace each line of `text` that ends in `# <- name` by the value of that name; an empty one
    removes the line, and lines without a value stay.
    """

    def line(match: re.Match[str]) -> str:
        if match["name"] not in values:
            return match[0]
        value = values[match["name"]]
        return f"{match['indent']}{value}\n" if value else ""

    return _MARKED.sub(line, text)


def put(text: str, old: str, new: str) -> str:
    """Replace `old`, which the template must hold, by `new`."""
    if old not in text:
        raise ValueError(f"the template has no {old!r}")
    return text.replace(old, new)
