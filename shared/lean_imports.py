"""Imports without the optional parts of libraries that are not used here.

Some libraries load a package for a purpose of their own wherever it is installed. Each of these
took between 0.02 and 0.15 s of every start.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType

UNUSED = ("trio", "anyio")
"""Packages for asynchronous code, which httpcore imports; sitemapd uses threads."""

NAMED_ONLY = {
    "redis": (
        "asyncio", "redis.asyncio", "redis.asyncio.observability.recorder", "redis.cluster",
        "redis.keyspace_notifications", "redis.sentinel",
    ),
    "pydantic.plugin._loader": ("importlib.metadata",),
}  # fmt: skip
"""Modules that a library imports names from, by the module whose import does; a command calls none
of them: it uses one Redis, by synchronous calls, and no plugins of pydantic.
"""


def leave_out(*names: str) -> None:
    """Let no library import UNUSED or `names` in this process, as if they were not installed.

    Those that are loaded already stay. Pydantic looks for no plugins among the installed packages.
    """
    for name in (*UNUSED, *names):
        sys.modules.setdefault(name, None)  # type: ignore[arg-type]  # None makes imports fail
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")


def load_little() -> None:
    """Let libraries import NAMED_ONLY without loading it, for a process that runs one command and
    ends. Whoever imports a name from it later gets the true one.
    """
    for importer, names in NAMED_ONLY.items():
        for name in names:
            sys.modules.setdefault(name, _Placeholder(name, importer))


class _Placeholder(ModuleType):
    """Stands for a module until its names are used.

    While `importer` is being imported, each name is a class without members.
    """

    def __init__(self, name: str, importer: str) -> None:
        super().__init__(name)
        self._importer = importer

    def __getattr__(self, name: str) -> object:
        if name.startswith("__") and name != "__path__":  # of the import system and of inspect
            raise AttributeError(name)
        importer = getattr(sys.modules.get(self._importer), "__spec__", None)
        if getattr(importer, "_initializing", False):
            return [] if name == "__path__" else type(name, (), {})
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return getattr(import_module(self.__name__), name)


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
