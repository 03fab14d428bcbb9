"""Text of others on one line, for terminals and logs."""

from __future__ import annotations


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
