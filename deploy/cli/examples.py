"""Examples of a command, shown at the end of its help."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

_Function = TypeVar("_Function", bound=Callable[..., Any])
_NAME = "__examples__"


def examples(first: str, second: str) -> Callable[[_Function], _Function]:
    """Give a command two examples: command lines that begin with `sitemapd`, of different use."""

    def give(function: _Function) -> _Function:
        setattr(function, _NAME, (first, second))
        return function

    return give


def examples_of(function: object) -> tuple[str, ...]:
    """Return the examples of the function of a command; none where it has none."""
    return getattr(function, _NAME, ())
