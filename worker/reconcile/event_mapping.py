"""Mapping of source records to events, without their invalid parts."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from shared.clock import now_ms
from shared.domain.entries.news_entries import is_current
from shared.domain.expiry import is_over
from shared.errors import DateError, Fault, InvalidError
from shared.events.event import Event, parse
from shared.events.event_fields import MAX_ID, EventRules
from shared.events.plain_page import PlainPage
from shared.sitemap import urls, w3c_dates
from shared.sitemap.entry import CHANGEFREQS, priority_text
from shared.sitemap.extensions.news import appears_ms
from worker.reconcile.field_salvage import SOFT, salvage, shortened
from worker.sources import Item, Note, RecordRefusal, SourceRecord

_STATED = ("loc", *SOFT)
_TOLD_BY_READERS = frozenset({"I2", "V9", "W9"})
"""Rules of deprecated fields: noted once per file, not per page."""

_TOLD_BY_THE_CLOCK = "M5"
"""Rule that `_timely` notes by the mapper's own clock."""

_PLAIN_EXTRAS = frozenset({"id", "section"})
_PLAIN_ID = re.compile(rf"[!-~]{{1,{MAX_ID}}}")
_MOST_DATES = 10_000


class Remark(NamedTuple):
    """One line of the report: a page `refused`, or something `noted` about one that was kept.

    `rule` is the id of a rule of PROTOCOL (`L5`) or a short code.
    """

    kind: str
    where: str
    rule: str
    detail: str
    loc: str | None = None
    times: int = 1


OnRemark = Callable[[Remark], None]


class EventMapper:
    """Maps records to events for a site of these rules; `section` is for pages that name none."""

    def __init__(
        self, rules: EventRules, section: str | None = None, now_ms: Callable[[], int] = now_ms
    ) -> None:
        """Create a mapper; `now_ms` is the clock for dates, news and videos (ms since 1970)."""
        self._rules, self._section, self._now_ms = rules, section, now_ms
        self._plain_sections = rules.sections - rules.news
        self._dates: dict[str, str] = {}

    def page(
        self, item: Item, version: int | None, on_remark: OnRemark
    ) -> PlainPage | Event | None:
        """Return `event`, as a plain page where it is one."""
        if isinstance(item, SourceRecord) and (page := self._plain(item, version)):
            return page
        event = self.event(item, version, on_remark)
        return event if event is None else PlainPage.of(event) or event

    def _plain(self, record: SourceRecord, version: int | None) -> PlainPage | None:
        """Return the page of a record that is valid as it is; None decides nothing."""
        rules, extra = self._rules, record.extra
        if record.images or record.videos or record.news or record.alternates or rules.engines:
            return None
        if record.owner is not None:
            return None
        ident, section = None, self._section
        if extra:
            if not _PLAIN_EXTRAS.issuperset(extra):
                return None
            ident, section = extra.get("id"), extra.get("section", section)
            if ident is not None and not (type(ident) is str and _PLAIN_ID.fullmatch(ident)):
                return None
        if section is not None and section not in self._plain_sections:
            return None
        if not urls.is_canonical(record.loc, rules.base):
            return None
        try:
            lastmod, changefreq, priority = self._dates_and_hints(record)
        except LookupError:
            return None
        return PlainPage(record.loc, lastmod, changefreq, priority, ident, section, version)

    def _dates_and_hints(self, record: SourceRecord) -> tuple[str | None, str | None, str | None]:
        """Return lastmod, changefreq and priority in their canonical form. Raises LookupError
        unless they are valid.
        """
        lastmod, changefreq, priority = record.lastmod, record.changefreq, record.priority
        if lastmod is not None:
            lastmod = self._dates.get(lastmod) or self._date(lastmod)
        if changefreq is not None and changefreq not in CHANGEFREQS:
            raise LookupError
        if priority is not None and (priority := priority_text(priority)) is None:
            raise LookupError
        return lastmod, changefreq, priority

    def _date(self, text: str) -> str:
        """Return the canonical form of a date that is not in the future, and keep it: the pages of
        a source share few dates. Raises LookupError for another.
        """
        try:
            date = w3c_dates.canonical(text)
        except DateError as error:
            raise LookupError from error
        if w3c_dates.in_future(date, self._now_ms()):
            raise LookupError
        if len(self._dates) >= _MOST_DATES:
            self._dates.clear()
        self._dates[text] = date
        return date

    def event(self, item: Item, version: int | None, on_remark: OnRemark) -> Event | None:
        """Return the event of one item; a bad date, hint or extension is left out of it.

        It has `version` unless the item states one. None for a refusal or a note: `on_remark` gets
        each.
        """
        if isinstance(item, RecordRefusal):
            on_remark(Remark("refused", item.where, item.rule, item.detail, item.loc))
            return None
        if isinstance(item, Note):
            on_remark(Remark("noted", item.where, item.rule, item.detail, times=item.count))
            return None
        long: list[Fault] = []
        members = shortened(
            self._members(item, version, on_remark), lambda _, fault: long.append(fault)
        )
        warnings: list[Fault] = []

        def take(given: Mapping[str, Any]) -> Event:
            warnings.clear()
            return parse(given, self._rules, warnings=warnings)

        try:
            event, gone = salvage(members, take)
        except InvalidError as error:
            fault = error.faults[0]
            detail = f"{fault.field}: {fault.detail}"
            on_remark(Remark("refused", item.where, _rule(fault), detail, item.loc))
            return None
        told = [(fault, f"{name} left out: {_within(name, fault)}") for name, fault in gone.items()]
        told += [(fault, f"{fault.field}: {fault.detail}") for fault in long + warnings]
        for fault, detail in told:
            if _rule(fault) not in {*_TOLD_BY_READERS, _TOLD_BY_THE_CLOCK}:
                on_remark(Remark("noted", item.where, _rule(fault), detail, item.loc))
        if item.owner is not None:
            source, kind, locale = item.owner
            event = replace(event, source=source, kind=kind, locale=locale)
        return _timely(event, item, on_remark, self._now_ms())

    def _members(
        self, record: SourceRecord, version: int | None, on_remark: OnRemark
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
            on_remark(Remark("noted", record.where, "W11", detail, record.loc))
        members |= record.extra or {}
        stated = members["version"]
        if isinstance(stated, str) and stated.isascii() and stated.isdigit():
            members["version"] = int(stated)
        if "section" in record.silent and members["section"] not in self._plain_sections:
            members["section"] = self._section
        return members


def _timely(event: Event, record: SourceRecord, on_remark: OnRemark, now_ms: int) -> Event:
    """Return `event` without parts that would later be dropped by time (PROTOCOL M5, V6, W4)."""
    gone: dict[str, tuple[object, str, str]] = {}
    if event.lastmod is not None and w3c_dates.in_future(event.lastmod, now_ms):
        gone["lastmod"] = None, "M5", f"{event.lastmod} lies in the future"
    if event.news and now_ms < appears_ms(event.news):
        detail = f"news is listed from {event.news['publication_date']} on"
        on_remark(Remark("noted", record.where, "W4", detail, record.loc))
    elif event.news and not is_current(event.news, now_ms):
        detail = f"{event.news['publication_date']} does not lie in the last 48 hours"
        gone["news"] = None, "W4", detail
    shown = tuple(video for video in event.videos if not is_over(video, now_ms))
    if over := len(event.videos) - len(shown):
        gone["videos"] = shown, "V6", f"{over} expired"
    for name, (_, rule, detail) in gone.items():
        on_remark(Remark("noted", record.where, rule, f"{name} left out: {detail}", record.loc))
    kept: dict[str, Any] = {name: value for name, (value, _, _) in gone.items()}
    return replace(event, **kept) if kept else event


def _within(name: str, fault: Fault) -> str:
    """Return the fault of the part `name`, with the member of it if the fault is in one."""
    member = fault.field.removeprefix(name).lstrip(".") if fault.field.startswith(name) else ""
    return f"{member}: {fault.detail}" if member else fault.detail


def _rule(fault: Fault) -> str:
    return fault.rule.removeprefix("PROTOCOL ")
