"""Imports without the optional parts of libraries that are not used here.

Some libraries load a package for a purpose of their own wherever it is installed. Each of these
took between 0.02 and 0.15 s of every start.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

UNUSED = ("trio", "anyio")
"""Packages for asynchronous code, which httpcore imports; sitemapd uses threads."""


def leave_out(*names: str) -> None:
    """Let no library import UNUSED or `names` in this process, as if they were not installed.

    Those that are loaded already stay. Pydantic looks for no plugins among the installed packages.
    """
    for name in (*UNUSED, *names):
        sys.modules.setdefault(name, None)  # type: ignore[arg-type]  # None makes imports fail
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")


@contextmanager
def importing_less(name: str) -> Iterator[None]:
    """Let the imports within the block find no package `name`, as if it was not installed."""
    before = sys.modules.get(name)
    sys.modules[name] = None  # type: ignore[assignment]  # makes imports fail
    try:
        yield
    finally:
        del sys.modules[name]
        if before is not None:
            sys.modules[name] = before
