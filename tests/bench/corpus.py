"""A made-up shop of any size: distinct pages whose fragments are as long, and as hard to deflate,
as real ones.

A page is `/articles/YYYY/MM/word-word-word-word-12345678`: four of 2,000 made-up words, a random
number, and a lastmod to a random second of five years. That is about 100 bits of chance in 156
bytes, none of it shared between neighbours.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace

from shared.events.event import Event
from shared.sitemap import w3c_dates

BASE = "https://www.example-shop.com"
VOCABULARY = 2_000

_SYLLABLES = [c + v + e for c in "bcdfglmnprstv" for v in "aeiou" for e in ("", "n", "r", "st")]
_FIRST_S = 1_577_836_800  # 2020-01-01
_SPAN_S = 5 * 365 * 86_400
_STRIDE = 55_623_059  # has no factor in common with the 90,000,000 numbers, so none comes twice


class Corpus:
    """Pages that are the same in every run for the same `seed`."""

    def __init__(self, seed: int = 1) -> None:
        self._random = random.Random(seed)
        words: set[str] = set()
        while len(words) < VOCABULARY:
            words.add(
                "".join(self._random.choices(_SYLLABLES, k=self._random.choice((2, 3, 3, 4))))
            )
        self._words = sorted(words)
        self._numbers: set[int] = set()

    def pages(self, count: int) -> Iterator[Event]:
        """`count` new pages, as events without a version."""
        for _ in range(count):
            chance, number = self._random, self._random.randrange(10**7, 10**8)
            while number in self._numbers:
                number = chance.randrange(10**7, 10**8)
            self._numbers.add(number)
            when = w3c_dates.from_epoch_s(_FIRST_S + chance.randrange(_SPAN_S))
            slug = "-".join(chance.choices(self._words, k=4))
            yield Event(
                "upsert", f"{BASE}/articles/{when[:4]}/{when[5:7]}/{slug}-{number}", lastmod=when
            )

    def rows(self, count: int) -> Iterator[tuple[str, str]]:
        """`count` pages as loc and lastmod, five times as fast, for one call of each Corpus.

        Each distinct within the call alone: of tens of millions none is remembered.
        """
        chance, words = self._random.getrandbits, self._words
        days = [
            w3c_dates.from_epoch_s(_FIRST_S + day * 86_400)[:10] for day in range(_SPAN_S // 86_400)
        ]
        paths = [f"{BASE}/articles/{day[:4]}/{day[5:7]}/" for day in days]
        times = [w3c_dates.from_epoch_s(second)[10:] for second in range(86_400)]
        for at in range(count):
            bits = chance(96)
            day, number = bits % len(days), 10**7 + at * _STRIDE % (9 * 10**7)
            bits >>= 16
            one, two = words[bits % VOCABULARY], words[(bits >> 11) % VOCABULARY]
            bits >>= 22
            three, four = words[bits % VOCABULARY], words[(bits >> 11) % VOCABULARY]
            yield (
                f"{paths[day]}{one}-{two}-{three}-{four}-{number}",
                days[day] + times[(bits >> 22) % 86_400],
            )

    def changed(self, page: Event) -> Event:
        """`page` as it is after an edit: with another lastmod."""
        second = _FIRST_S + self._random.randrange(_SPAN_S)
        return replace(page, lastmod=w3c_dates.from_epoch_s(second))
