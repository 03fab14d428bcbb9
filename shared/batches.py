"""Splitting of an iterable into lists of bounded length."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

_T = TypeVar("_T")


def batches(items: Iterable[_T], most: int) -> Iterator[list[_T]]:
    """Yield `items` in lists of `most`; the last one may be shorter."""
    iterator = iter(items)
    while batch := list(islice(iterator, most)):
        yield batch
