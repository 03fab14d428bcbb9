"""What a source says of a page as an event, without what is wrong with it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from shared.errors import Fault, InvalidError
from shared.events import Event, parse
from shared.members import Rules
from shared.patch import in_future
from worker.pruning import CUTS, SOFT, is_soft, without
from worker.sources import Item, Note, Record, Refusal

_STATED = ("loc", *SOFT)


class Said(NamedTuple):
    """One line of the report: a page `refused`, or something `noted` about one that was kept.

    `rule` is the id of a rule of PROTOCOL (`L5`) or a short code.
    """

    kind: str
    where: str
    rule: str
    detail: str
    loc: str | None = None
    times: int = 1


class Translator:
    """Makes events for a site of these rules; `section` is where pages go that name none."""

    def __init__(self, rules: Rules, section: str | None = None) -> None:
        self._rules, self._section = rules, section
        self._plain_sections = rules.sections - rules.news

    def event(self, item: Item, version: int, say: Callable[[Said], None]) -> Event | None:
        """The event of one item; a page with a bad date, hint or extension comes without it."""
        if isinstance(item, Refusal):
            say(Said("refused", item.where, item.rule, item.detail, item.loc))
            return None
        if isinstance(item, Note):
            say(Said("noted", item.where, item.rule, item.detail, times=item.count))
            return None
        members = self._members(item, version, say)
        for cut in CUTS:
            try:
                return _dated(parse(members, self._rules), item, say)
            except InvalidError as error:
                hard = [fault for fault in error.faults if not is_soft(fault, members)]
                if hard:
                    say(Said("refused", item.where, _rule(hard[0]), hard[0].detail, item.loc))
                    return None
                members, gone = without(members, error.faults, cut)
            for name, fault in gone.items():
                detail = f"{name} left out: {fault.detail}"
                say(Said("noted", item.where, _rule(fault), detail, item.loc))
        return _dated(parse(members, self._rules), item, say)

    def _members(
        self, record: Record, version: int, say: Callable[[Said], None]
    ) -> dict[str, object]:
        members: dict[str, object] = {
            "type": "upsert", "version": version, "section": self._section,
        }  # fmt: skip
        for name in _STATED:
            if value := getattr(record, name):
                members[name] = value
        if "news" in members and not self._rules.news:
            del members["news"]
            detail = "news left out: no section of this site is for news (news = true)"
            say(Said("noted", record.where, "W11", detail, record.loc))
        members |= record.extra or {}
        stated = members["version"]
        if isinstance(stated, str) and stated.isascii() and stated.isdigit():
            members["version"] = int(stated)
        if "section" in record.silent and members["section"] not in self._plain_sections:
            members["section"] = self._section
        return members


def _dated(event: Event, record: Record, say: Callable[[Said], None]) -> Event:
    """`event` without a lastmod in the future, which would go unsaid later on (PROTOCOL M5)."""
    if event.lastmod is None or not in_future(event.lastmod, _now()):
        return event
    detail = f"lastmod left out: {event.lastmod} lies in the future"
    say(Said("noted", record.where, "M5", detail, record.loc))
    return replace(event, lastmod=None)


def _rule(fault: Fault) -> str:
    return fault.rule.removeprefix("PROTOCOL ")


def _now() -> int:
    return time.time_ns() // 1_000_000
