"""What a source asks for besides its address."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """A `key` that is never shown, and the `query` that names a database's pages; empty: none."""

    key: str = field(default="", repr=False)
    query: str = ""


NO_ACCESS = SourceOptions()
