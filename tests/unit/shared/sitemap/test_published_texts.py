"""Whatever text a sender gives, what is published is XML, and says what was sent (PROTOCOL F4)."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from shared.sitemap import fragments
from shared.sitemap.entry import Entry
from shared.sitemap.extensions import images, news, videos
from shared.sitemap.extensions.report import ValueReport
from tests.unit.extensions import (
    LOC,
    VIDEO,
    document,
    image_values,
    news_values,
    sound,
    video_values,
)
from tests.unit.strategies import alternate_sets, entries

RNG = Path(__file__).parents[3] / "schema" / "urlset.rng"
DESCRIPTION = "{http://www.google.com/schemas/sitemap-video/1.1}description"
SPACE = " \t\r\n"


@lru_cache(1)
def schema() -> etree.RelaxNG:
    return etree.RelaxNG(etree.parse(RNG))


def taken(kind: Any, value: Any, **more: Any) -> Any:
    """The canonical value that a site publishes, without what is deprecated; None for faults."""
    report = ValueReport()
    return sound(kind.take(value, report, deprecated=False, **more), report)


def some(kind: Any, values: st.SearchStrategy[Any], **more: Any) -> st.SearchStrategy[Any]:
    return (
        st.lists(values, max_size=2)
        .map(lambda value: taken(kind, value, **more))
        .filter(lambda value: value is not None)
    )


published_entries = st.builds(
    replace,
    entries,
    alternates=alternate_sets,
    images=some(images, image_values),
    videos=some(videos, video_values, loc=None),
    news=st.none() | news_values.map(lambda value: taken(news, value)),
)


@given(st.lists(published_entries, min_size=1, max_size=3, unique_by=lambda entry: entry.loc))
def test_any_valid_entries_are_a_valid_file_and_read_back_as_they_were(listed: list[Entry]) -> None:
    """PROTOCOL F5, F6, F13, H1, I1, I2, V1 to V9, W1, W2, W9, C0: by the schema of our own."""
    content = b"".join(map(fragments.render, listed))
    file = fragments.urlset_start(fragments.uses(content)) + content + fragments.URLSET_END

    schema().assertValid(etree.fromstring(file))
    assert listed == [fragments.parse(fragments.render(entry)) for entry in listed]


def chunks() -> Iterator[str]:
    """Every code point that there is, lone surrogates too, 2,000 at a time."""
    for start in range(0, sys.maxunicode + 1, 2_000):
        yield "".join(map(chr, range(start, min(start + 2_000, sys.maxunicode + 1))))


def test_every_character_of_unicode_is_published_or_taken_out_with_a_warning() -> None:
    """PROTOCOL F4, RELIABILITY T14: another parser reads what was sent, without what XML cannot."""
    gone = 0
    for chunk in chunks():
        report = ValueReport()
        (video,) = videos.take(
            [{**VIDEO, "description": f"a{chunk}b"}], report, loc=LOC, deprecated=False
        )
        tree = etree.fromstring(document(Entry(LOC, videos=(video,))))
        read = next(tree.iter(DESCRIPTION)).text
        legal = "".join(filter(is_legal, chunk))

        assert report.faults == []
        assert read == " ".join(part for part in split(f"a{legal}b") if part)
        assert [said[1] for said in report.warnings] == ["PROTOCOL F4"] * (legal != chunk)
        gone += len(chunk) - len(legal)
    assert gone == 29 + 2 + 2_048


def is_legal(character: str) -> bool:
    """The production Char of XML 1.0."""
    number = ord(character)
    return (
        character in "\t\n\r"
        or 0x20 <= number <= 0xD7FF
        or 0xE000 <= number <= 0xFFFD
        or number >= 0x10000
    )


def split(text: str) -> list[str]:
    for space in SPACE:
        text = text.replace(space, " ")
    return text.split(" ")
