"""Requests of senders: pages, translation groups, news and videos that expire, hostile names."""

from __future__ import annotations

import random
import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from tests.faults.deployment import BASE
from tests.faults.ledger import EPOCH, Sent, lastmod_of

SECTIONS = ("pages", "posts", "products", "seen", "inbox")
"""Two of them are called like keys of the store (RELIABILITY T36)."""
HOT, COLD = 200, 20_000
"""Pages of a section: half of the events are of a few that change all the time, half of many, where
no later event covers up that one was lost.
"""
LANGUAGES = (
    "ar", "cs", "da", "de", "el", "en", "es", "fi", "fr", "he",
    "hu", "it", "ja", "ko", "nl", "pl", "pt", "sv", "tr", "uk",
)  # fmt: skip
GROUPS = 12
NEWS_S = 48 * 3600
LIVES_S = (2, 40)
"""In how many seconds news and videos are over: while the case goes on."""
LARGE = 1_000
DELIVERIES = (
    "shards", "files", "pending:1", "taking:1", "blocks:1", "inbox", "dirty", "loc:0", "*",
    "/etc/passwd", "{demo}:inbox", "[/red]", "%00", "$", "0-1",
)  # fmt: skip
"""Ids of deliveries that name a key of the store, a path, or markup."""
IDENTS = ("shards:{}", "{{demo}}:{}", "../{}", "seen {}", "\u202e{}", "[/red]{}", "\U0001f600{}")
"""Ids of pages, each with the number of the page."""


class Contents:
    """Makes requests: a section and its events."""

    def __init__(
        self, chance: random.Random, version: Callable[[], int], names: list[str], *, timed: bool
    ) -> None:
        """`version` gives the next one; `names` are ids of deliveries, each taken out when used.

        Unless `timed`, nothing that is sent expires.
        """
        self._chance, self._version, self._names = chance, version, names
        kinds = {self._plain: 75, self._group: 15, self._large: 0.05}
        self._kinds = kinds | ({self._expiring: 8} if timed else {})

    def ident(self) -> str:
        """The id of the next delivery."""
        if self._chance.random() < 0.02:
            with suppress(IndexError):  # used up, by whichever sender
                return self._names.pop()
        return f"msg_{secrets.token_hex(8)}"

    def request(self) -> tuple[str, list[Sent]]:
        """A section, and events that belong there."""
        (kind,) = self._chance.choices(list(self._kinds), list(self._kinds.values()))
        return kind()

    def _plain(self) -> tuple[str, list[Sent]]:
        section = self._chance.choice(SECTIONS)
        return section, [self._page(section) for _ in range(self._chance.choice((1, 1, 3, 8)))]

    def _large(self) -> tuple[str, list[Sent]]:
        section = self._chance.choice(SECTIONS)
        return section, [self._page(section) for _ in range(LARGE)]

    def _page(self, section: str) -> Sent:
        chance, number = self._chance, self._chance.randrange(self._chance.choice((HOT, COLD)))
        name = IDENTS[number % len(IDENTS)].format(number) if section == "posts" else ""
        loc = f"{BASE}/{section}/{number}"
        return Sent(loc, self._version(), gone=chance.random() < 0.15, ident=name)

    def _group(self) -> tuple[str, list[Sent]]:
        """One member; several changes of one group; all its languages at once."""
        number, languages = self._chance.randrange(GROUPS), list(LANGUAGES)
        self._chance.shuffle(languages)
        some = languages[: self._chance.choice((1, 1, 1, 3, len(languages)))]
        if len(some) == 3:
            # Taken out and put back within one request, or the other way round.
            some += some[:1]
        return "pages", [self.member(number, code) for code in some]

    def member(self, number: int, code: str, *, gone: bool | None = None) -> Sent:
        """One language of a group: now and then it leaves, or belongs to the next group."""
        chance = self._chance
        gone = chance.random() < 0.2 if gone is None else gone
        group = number + (chance.random() < 0.05)
        left = not gone and chance.random() < 0.05
        return Sent(
            f"{BASE}/{code}/g/{number}", self._version(), gone=gone,
            group="" if gone or left else f"group {group}", lang="" if gone or left else code,
        )  # fmt: skip

    def _expiring(self) -> tuple[str, list[Sent]]:
        """A page with news or a video whose time is nearly over."""
        until = int(time.time()) + self._chance.randrange(*LIVES_S)
        news = self._chance.random() < 0.5
        sent = Sent(
            f"{BASE}/products/new/{self._chance.randrange(HOT)}", self._version(),
            gone=self._chance.random() < 0.1, news_until=until if news else 0,
            video_until=0 if news else until,
        )  # fmt: skip
        return "products", [sent]


def event_of(sent: Sent, section: str) -> dict[str, object]:
    """The event of `sent` in the native form."""
    told: dict[str, Any] = {
        "type": "delete" if sent.gone else "upsert",
        "loc": sent.loc,
        "section": section,
        "version": (EPOCH + sent.version) * 1000,
    }
    if sent.ident:
        told["id"] = sent.ident
    if sent.gone:
        return told
    told["lastmod"] = lastmod_of(sent.version)
    if sent.group:
        told |= {"group": sent.group, "lang": sent.lang}
    if sent.news_until:
        told["news"] = {
            "publication": {"name": "The Example", "language": "en"},
            "publication_date": _moment(sent.news_until - NEWS_S),
            "title": f"News of version {sent.version}",
        }
    if sent.video_until:
        told["videos"] = [{
            "thumbnail_loc": f"{BASE}/t.jpg", "title": "A video", "description": "It expires.",
            "content_loc": f"{BASE}/v.mp4", "expiration_date": _moment(sent.video_until),
        }]  # fmt: skip
    return told


def _moment(seconds: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))
