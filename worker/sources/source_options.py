"""Options of a source besides its address."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """A secret `key`, and the `query` that returns a database's pages; empty: none."""

    key: str = field(default="", repr=False)
    query: str = ""


NO_ACCESS = SourceOptions()
