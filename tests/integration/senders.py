"""What senders do: the half of the state machine that stands before the inbox."""

from __future__ import annotations

import time
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from tests.integration.rig import BASE, Rig

SECTIONS = ("pages", "posts", "n-a")
LASTMODS = (None, "2020-01-01", "2021-02-03T04:05:06Z", "2022-02-02")
DAY_MS = 86_400_000

plain = st.integers(0, 29)
lastmods = st.sampled_from(LASTMODS)


class Senders(RuleBasedStateMachine):
    """Plain pages, known by their URL, and a CMS whose pages have ids and unique slugs."""

    rig: Rig

    def __init__(self) -> None:
        super().__init__()
        self.version = time.time_ns() // 1_000_000 - DAY_MS
        self.sent: dict[str, dict[str, Any]] = {}  # by their ids in the inbox
        self.late: list[dict[str, Any]] = []
        self.held_up = 0
        self.slugs: dict[str, int] = {}

    @rule(page=plain, lastmod=lastmods, section=st.sampled_from(SECTIONS))
    def upsert(self, page: int, lastmod: str | None, section: str) -> None:
        self._send(plain_page(page) | {"section": section} | _lastmod(lastmod) | self._next())

    @rule(first=plain, count=st.integers(2, 15), section=st.sampled_from(SECTIONS))
    def burst(self, first: int, count: int, section: str) -> None:
        items = [plain_page((first + n) % 30) | {"section": section} for n in range(count)]
        self._send(*(item | self._next() for item in items))

    @rule(page=plain, how=st.sampled_from(("delete", "noindex", "canonical")))
    def remove(self, page: int, how: str) -> None:
        kind = {"delete": {"type": "delete"}, "noindex": {"noindex": True}}
        elsewhere = {"canonical": "https://elsewhere.example/"}
        self._send(plain_page(page) | kind.get(how, elsewhere) | self._next())

    @rule(data=st.data(), lastmod=lastmods)
    def save_again(self, data: st.DataObject, lastmod: str | None) -> None:
        """A page is saved as it was; then comes what happened to it before that."""
        lately = [item for item in list(self.sent.values())[-4:] if "id" not in item]
        if lately:
            again = data.draw(st.sampled_from(lately))
            before = {name: again[name] for name in ("loc", "section") if name in again}
            news = data.draw(st.sampled_from(({"type": "delete"}, {"type": "upsert"})))
            late = before | news | _lastmod(lastmod) | self._next()
            self._send(again | self._next())
            self._send(late)

    @rule(first=plain, count=st.integers(3, 20))
    def purge(self, first: int, count: int) -> None:
        items = [plain_page((first + n) % 30) | {"type": "delete"} for n in range(count)]
        self._send(*(item | self._next() for item in items))

    @rule(ident=st.integers(0, 5), slug=st.sampled_from("abcdefg"), lastmod=lastmods)
    def save_in_thecms_page(self, ident: int, slug: str, lastmod: str | None) -> None:
        """A page gets a free slug."""
        if self.slugs.get(slug, ident) == ident:
            if own := self._slug_of(ident):
                del self.slugs[own]
            self.slugs[slug] = ident
            self._send(cms_page(ident, slug) | _lastmod(lastmod) | self._next())

    @rule(data=st.data())
    def swap_in_thecms_page(self, data: st.DataObject) -> None:
        """Two pages change places; either save may come first."""
        if len(self.slugs) > 1:
            two = swap(self.slugs, data)
            events = [cms_page(self.slugs[slug], slug) | self._next() for slug in two]
            self._send(*data.draw(st.permutations(events)))

    @rule(ident=st.integers(0, 5), named=st.booleans())
    def trash_in_thecms_page(self, ident: int, named: bool) -> None:
        slug = self._slug_of(ident)
        if slug is not None:
            del self.slugs[slug]
            loc = {"loc": f"{BASE}c/{slug}"} if named else {}
            self._send({"type": "delete", "id": ident} | loc | self._next())

    @rule(data=st.data(), count=st.integers(1, 4))
    def repeat(self, data: st.DataObject, count: int) -> None:
        """Anything that was sent is sent again, in any order."""
        if self.sent:
            every = list(self.sent.values())
            self._deliver([data.draw(st.sampled_from(every)) for _ in range(count)])

    @rule(count=st.integers(1, 3))
    def hold_up(self, count: int) -> None:
        """The next deliveries will be late: see `deliver_late`."""
        self.held_up = count

    @rule(data=st.data())
    def deliver_late(self, data: st.DataObject) -> None:
        late, self.late = self.late, []
        self._deliver(data.draw(st.permutations(late)))

    def _next(self) -> dict[str, int]:
        self.version += 1
        return {"version": self.version}

    def _send(self, *items: dict[str, Any]) -> None:
        if self.held_up:
            self.held_up -= 1
            self.late += items
        else:
            self._deliver(list(items))

    def _deliver(self, items: list[dict[str, Any]]) -> None:
        if items:
            ids = self.rig.send(*items)
            self.sent |= {
                ident: item | ({"id": str(item["id"])} if "id" in item else {})
                for ident, item in zip(ids, items, strict=True)
            }

    def _slug_of(self, ident: int) -> str | None:
        return next((slug for slug, owner in self.slugs.items() if owner == ident), None)


def swap(slugs: dict[str, int], data: st.DataObject) -> list[str]:
    """Two of `slugs`, which change their owners."""
    two = data.draw(st.permutations(sorted(slugs)))[:2]
    slugs |= zip(two, [slugs[slug] for slug in reversed(two)], strict=True)
    return list(two)


def plain_page(page: int) -> dict[str, Any]:
    # Of different lengths, and with characters that must be escaped.
    return {"type": "upsert", "loc": f"{BASE}p/{page}{'&x' * (page % 5)}"}


def cms_page(ident: int, slug: str) -> dict[str, Any]:
    return {"type": "upsert", "id": ident, "loc": f"{BASE}c/{slug}", "section": "posts"}


def _lastmod(lastmod: str | None) -> dict[str, str]:
    return {} if lastmod is None else {"lastmod": lastmod}
