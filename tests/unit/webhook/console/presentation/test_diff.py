"""Two versions of a line: what differs is marked, and nothing else is said than is there."""

from __future__ import annotations

import html
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webhook.console.presentation.diff import LONGEST, MOST_WORDS, marked

_TAG = re.compile(r"</?(?:del|ins)>")
WORDS = st.lists(
    st.sampled_from(["<url>", "<loc>", "</loc>", "a", "b", " ", "/", "-", "&amp;", "<del>", "é"]),
    max_size=30,
).map("".join)


def plain(said: object) -> str:
    """What a reader sees of it, whatever is between its words."""
    return re.sub(r"\s", "", html.unescape(_TAG.sub("", str(said))))


@given(WORDS, WORDS)
def test_both_versions_are_whole_and_what_is_not_marked_is_in_both(old: str, new: str) -> None:
    before, after = marked(old.encode(), new.encode())

    assert (plain(before), plain(after)) == (old.replace(" ", ""), new.replace(" ", ""))
    common = re.sub("<del>.*?</del>", "", str(before), flags=re.DOTALL)
    assert common == re.sub("<ins>.*?</ins>", "", str(after), flags=re.DOTALL)
    if old == new:
        assert "<del>" not in str(before)
        assert "<ins>" not in str(after)


@pytest.mark.parametrize(
    ("old", "new", "before", "after"),
    [
        ("<lastmod>2026-01-01</lastmod>", "<lastmod>2026-02-01</lastmod>",
         "2026-<del>01</del>-01", "2026-<ins>02</ins>-01"),
        ("<priority>0.5</priority>", "<priority>0.8</priority>",
         "&gt;<del>0.5</del>&lt;", "&gt;<ins>0.8</ins>&lt;"),
        ("<a></a>", "<a>x</a>", "&lt;a&gt;&lt;/a&gt;", "&gt;<ins>x</ins>&lt;"),
    ],
)  # fmt: skip
def test_words_are_marked_and_not_whole_lines(old: str, new: str, before: str, after: str) -> None:
    found = marked(old.encode(), new.encode())

    assert before in str(found.before)
    assert after in str(found.after)


def test_a_line_that_came_or_went_is_there_alone() -> None:
    assert marked(None, b"<url>\n") == (None, "&lt;url&gt;")
    assert marked(b"<url>\n", None) == ("&lt;url&gt;", None)


def test_long_lines_are_cut_and_many_differences_are_one() -> None:
    old = " ".join(f"a{n}" for n in range(MOST_WORDS)).encode()
    new = " ".join(f"b{n}" for n in range(MOST_WORDS)).encode()

    assert str(marked(old, new).before).count("<del>") == 1
    assert len(plain(marked(b"x" * 2 * LONGEST, None).before)) == LONGEST + 3
