"""Two versions of a line side by side, with the words marked that differ."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import takewhile

from markupsafe import Markup

from shared.store.revisions import Line

LONGEST = 4_000
"""Characters of a line that are shown."""
WORDS = 120
"""Words between the first and the last difference that are compared one by one: it takes the square
of that. More are marked as a whole.
"""

_MARKS = {"": Markup("{}"), "del": Markup("<del>{}</del>"), "ins": Markup("<ins>{}</ins>")}
_WORD = re.compile(r"<[^>]*>|[^<\s/-]+|.", re.DOTALL)


def marked(line: Line) -> tuple[Markup | None, Markup | None]:
    """`line` before and after; None where it was not, or is no more."""
    if line.before is None or line.after is None:
        return _whole(line.before, "del"), _whole(line.after, "ins")
    before, after = (_WORD.findall(_shown(each)) for each in (line.before, line.after))
    old, new = [], []
    for same, gone, come in _parts(before, after):
        old.append(_said(gone, "" if same else "del"))
        new.append(_said(come, "" if same else "ins"))
    return Markup("").join(old), Markup("").join(new)


def _parts(
    before: Sequence[str], after: Sequence[str]
) -> Iterator[tuple[bool, Sequence[str], Sequence[str]]]:
    """Runs of words that are in both, or that differ, in their order."""
    head = _alike(before, after)
    tail = min(_alike(before[::-1], after[::-1]), len(before) - head, len(after) - head)
    old, new = before[head : len(before) - tail], after[head : len(after) - tail]
    yield True, before[:head], after[:head]
    if max(len(old), len(new)) > WORDS:
        yield False, old, new
    else:
        for tag, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
            yield tag == "equal", old[a:b], new[c:d]
    yield True, before[len(before) - tail :], after[len(after) - tail :]


def _alike(one: Sequence[str], other: Sequence[str]) -> int:
    """How many words are the same from the beginning."""
    pairs = zip(one, other, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _whole(fragment: bytes | None, tag: str) -> Markup | None:
    return None if fragment is None else _said([_shown(fragment)], tag)


def _shown(fragment: bytes) -> str:
    text = fragment.decode(errors="replace").rstrip("\n")
    return text if len(text) <= LONGEST else text[:LONGEST] + " ..."


def _said(words: Sequence[str], tag: str) -> Markup:
    text = "".join(words)
    return _MARKS[tag if text else ""].format(text)
