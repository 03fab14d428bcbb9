"""Scope of a resync or a reconcile: a whole site, one section, or one prefix of URLs."""

from __future__ import annotations

from typing import NamedTuple, Self

from shared.events.event import Event

_WHOLE = "site"


class Scope(NamedTuple):
    """All pages of `section`, all whose canonical URLs begin with `prefix`, or all.

    At most one of the two is set. A split section includes all of its parts.
    """

    section: str | None = None
    prefix: str | None = None

    def __str__(self) -> str:
        if self.section is not None:
            return f"section {self.section}"
        return _WHOLE if self.prefix is None else f"prefix {self.prefix}"

    @classmethod
    def of(cls, text: str) -> Self:
        """The scope that `str` wrote; the whole site for any other text."""
        kind, _, value = text.partition(" ")
        return cls(**{kind: value}) if kind in cls._fields else cls()

    @classmethod
    def of_event(cls, event: Event) -> Self:
        """The scope that a resync asks for."""
        return cls(event.section, event.prefix)

    @property
    def whole(self) -> bool:
        """True for the whole site."""
        return self.section is self.prefix is None

    def holds(self, loc: str, families: frozenset[str]) -> bool:
        """True if the page `loc`, which is or will be in one of `families`, is in this scope."""
        if self.prefix is not None:
            return loc.startswith(self.prefix)
        return self.section is None or self.section in families

    def answers(self, other: Scope) -> bool:
        """True if a comparison of this scope leaves nothing of `other` to compare."""
        if self.whole or self == other:
            return True
        ours, theirs = self.prefix, other.prefix
        return ours is not None and theirs is not None and theirs.startswith(ours)


WHOLE = Scope()
