"""Text in XML: the characters it may hold, and their escapes (PROTOCOL F4)."""

from __future__ import annotations

import re

_ILLEGAL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff\ud800-\udfff]")
_SPACE = re.compile(r"[ \t\r\n]+")


def escape(text: str) -> str:
    """`text` with the five characters of PROTOCOL F4 as entities."""
    if "&" in text:
        text = text.replace("&", "&amp;")
    if "'" in text:
        text = text.replace("'", "&apos;")
    if '"' in text or "<" in text or ">" in text:
        text = text.replace('"', "&quot;").replace("<", "&lt;").replace(">", "&gt;")
    return text


def legal(text: str) -> str:
    """`text` without the characters that no XML file can hold, not even escaped."""
    return _ILLEGAL.sub("", text)


def one_line(text: str) -> str:
    """`text` without white space around it, and each run inside as one space.

    Line ends do not survive in attributes, and a fragment is one line.
    """
    return _SPACE.sub(" ", text).strip()
