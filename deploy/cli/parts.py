"""Parts of printed lines and cells."""

from __future__ import annotations

from shared.visible_text import visible

Part = str | tuple[str, str]
"""A text, or a text and its style."""


def plain(part: Part) -> str:
    """Return the text of a part as a terminal may show it, without its style."""
    return visible(part if isinstance(part, str) else part[0])
