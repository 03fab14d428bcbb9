"""Two versions of a line: what differs is marked, and nothing else is said than is there."""

from __future__ import annotations

import html
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.store.revisions import Line
from webhook.console import diffs

_TAG = re.compile(r"</?(?:del|ins)>")
WORDS = st.lists(
    st.sampled_from(["<url>", "<loc>", "</loc>", "a", "b", " ", "/", "-", "&amp;", "<del>", "é"]),
    max_size=30,
).map("".join)


def plain(marked: str) -> str:
    """What a reader sees of it."""
    return html.unescape(_TAG.sub("", marked))


@given(WORDS, WORDS)
def test_both_versions_are_whole_and_what_is_not_marked_is_in_both(old: str, new: str) -> None:
    before, after = diffs.marked(Line(old.encode(), new.encode()))

    assert plain(str(before)) == old
    assert plain(str(after)) == new
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
        ("<a></a>", "<a><b>x</b></a>", "&lt;a&gt;&lt;/a&gt;", "<ins>&lt;b&gt;x&lt;/b&gt;</ins>"),
    ],
)  # fmt: skip
def test_words_are_marked_and_not_whole_lines(old: str, new: str, before: str, after: str) -> None:
    marked = diffs.marked(Line(old.encode(), new.encode()))

    assert before in str(marked[0])
    assert after in str(marked[1])


def test_a_line_that_came_or_went_is_marked_as_a_whole() -> None:
    assert diffs.marked(Line(None, b"<url>\n")) == (None, "<ins>&lt;url&gt;</ins>")
    assert diffs.marked(Line(b"<url>\n", None)) == ("<del>&lt;url&gt;</del>", None)


def test_long_lines_are_cut_and_many_differences_are_one() -> None:
    old = " ".join(f"a{n}" for n in range(diffs.WORDS)).encode()
    new = " ".join(f"b{n}" for n in range(diffs.WORDS)).encode()
    before, _ = diffs.marked(Line(old, new))
    long, _ = diffs.marked(Line(b"x" * 9_000, None))

    assert str(before).count("<del>") == 1
    assert len(plain(str(long))) == diffs.LONGEST + 4
