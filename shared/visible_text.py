"""Text of others on one line, for terminals and logs."""

from __future__ import annotations

from collections.abc import Collection
from itertools import islice

_FEW = 20


def visible(text: str) -> str:
    """`text` on one line, with control and invisible characters written as escapes.

    These are all but printable characters and the space: controls, direction overrides,
    zero-width characters, halves of a surrogate pair (RELIABILITY T28, T36).
    """
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in text
    )


def few(names: Collection[str]) -> str:
    """The first of `names`, and how many more there are."""
    more = len(names) - _FEW
    return ", ".join(islice(names, _FEW)) + (f" and {more:,} more" if more > 0 else "")
