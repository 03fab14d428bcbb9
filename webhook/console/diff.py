"""Two versions of an XML line with what differs between them marked, word by word."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

from markupsafe import Markup, escape

MOST_WORDS = 2_000
"""Of longer lines nothing is marked: to compare them takes a time that grows with its square."""

_WORDS = re.compile(r"\s+|</?[^>]*>|[^\s<]+")
_BETWEEN = re.compile(r">\s*(?=<(?!/)|</url>)")


class Marked(NamedTuple):
    """A line before and after, None where it was not or is no more."""

    before: Markup | None
    after: Markup | None


def marked(before: bytes | None, after: bytes | None) -> Marked:
    """Each element on a line of its own; what went in `<del>`, what came in `<ins>`."""
    old, new = _words(before), _words(after)
    if before is None or after is None or len(old) + len(new) > MOST_WORDS:
        return Marked(
            None if before is None else escape("".join(old)),
            None if after is None else escape("".join(new)),
        )
    went, came = list[Markup](), list[Markup]()
    for how, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        went.append(_piece(old[a:b], "" if how == "equal" else "del"))
        came.append(_piece(new[c:d], "" if how == "equal" else "ins"))
    return Marked(Markup("").join(went), Markup("").join(came))


def _words(line: bytes | None) -> Sequence[str]:
    text = (line or b"").decode(errors="replace").strip()
    return _WORDS.findall(_BETWEEN.sub(">\n", text))


def _piece(words: Sequence[str], mark: str) -> Markup:
    text = escape("".join(words))
    return Markup("<{0}>{1}</{0}>").format(mark, text) if mark and words else text
