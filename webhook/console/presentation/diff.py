"""Diff of two versions of an XML line, marked word by word."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import takewhile
from typing import NamedTuple

from markupsafe import Markup

MOST_WORDS = 120
"""Words between the first and the last difference that are compared one by one, in time quadratic
to their number. More are marked as a whole.
"""
LONGEST = 10_000
"""Characters of a line that are shown."""

_WORDS = re.compile(r"\s+|</?[^>]*>|[^\s</-]+|.")
_BETWEEN = re.compile(r">\s*(?=<(?!/)|</url>)")
_MARKS = {"": Markup("{}"), "del": Markup("<del>{}</del>"), "ins": Markup("<ins>{}</ins>")}


class MarkedDiff(NamedTuple):
    """A line before and after, None where there is none."""

    before: Markup | None
    after: Markup | None


def marked(before: bytes | None, after: bytes | None) -> MarkedDiff:
    """Put each element on a line of its own; removed words in `<del>`, added ones in `<ins>`."""
    old, new = _words(before), _words(after)
    if before is None or after is None:
        return MarkedDiff(
            None if before is None else _piece(old, ""), None if after is None else _piece(new, "")
        )
    went, came = list[Markup](), list[Markup]()
    for same, gone, come in _parts(old, new):
        went.append(_piece(gone, "" if same else "del"))
        came.append(_piece(come, "" if same else "ins"))
    return MarkedDiff(Markup("").join(went), Markup("").join(came))


def _parts(
    old: Sequence[str], new: Sequence[str]
) -> Iterator[tuple[bool, Sequence[str], Sequence[str]]]:
    """Yield runs of words that are equal, or that differ, in order."""
    head = _alike(old, new)
    yield True, old[:head], new[:head]
    old, new = old[head:], new[head:]
    tail = _alike(old[::-1], new[::-1])
    before, after = old[: len(old) - tail], new[: len(new) - tail]
    if max(len(before), len(after)) > MOST_WORDS:
        yield False, before, after
    else:
        for how, a, b, c, d in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
            yield how == "equal", before[a:b], after[c:d]
    yield True, old[len(old) - tail :], new[len(new) - tail :]


def _alike(one: Sequence[str], other: Sequence[str]) -> int:
    """Return the number of equal words from the beginning."""
    pairs = zip(one, other, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _words(line: bytes | None) -> Sequence[str]:
    text = _BETWEEN.sub(">\n", (line or b"").decode(errors="replace").strip())
    return _WORDS.findall(text if len(text) <= LONGEST else text[:LONGEST] + " ...")


def _piece(words: Sequence[str], mark: str) -> Markup:
    return _MARKS[mark if words else ""].format("".join(words))
