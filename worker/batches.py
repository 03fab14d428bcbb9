"""Cut any iterable into lists of a bounded length."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

_T = TypeVar("_T")


def batches(items: Iterable[_T], most: int) -> Iterator[list[_T]]:
    """`items` in lists of `most`, the last one of what is left."""
    iterator = iter(items)
    while batch := list(islice(iterator, most)):
        yield batch
