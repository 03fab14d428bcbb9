"""Imports without the optional parts of a library that are not used here."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def importing_less(name: str) -> Iterator[None]:
    """Let the imports within the block find no package `name`, as if it was not installed."""
    before = sys.modules.get(name)
    sys.modules[name] = None  # type: ignore[assignment]  # makes the import fail
    try:
        yield
    finally:
        del sys.modules[name]
        if before is not None:
            sys.modules[name] = before
