"""Build valid events from the outcomes of an adapter. Pure.

A CMS cannot correct its deliveries, and stops sending to an endpoint that refuses them: the faulty
part of one page is left out and reported, and the rest of the delivery is accepted.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

from shared.cms.pages import PageChange, encodable
from shared.errors import InvalidError
from shared.events.event import Event, parse
from shared.events.event_fields import RESYNC, EventRules
from webhook.request_body import MAX_ITEMS
from webhook.sources.adapter import IgnoredDelivery, Outcome, ResyncAsked

_NAMED = frozenset({"type", "id"})
MAX_REASONS = 20


class BuiltEvents(NamedTuple):
    """The events of one delivery, the reasons for ignored parts, and the reasons for resyncs."""

    events: list[Event]
    ignored: list[str]
    resyncs: list[str]


def take(
    name: str, outcomes: Iterable[Outcome], rules: EventRules, moment: int | None, now_ms: int
) -> BuiltEvents:
    """Return the events of `outcomes` from the sender `name`, signed at `moment` (ms since 1970).

    That time is the version of events that have none, capped at `now_ms` (ms since 1970): a sender
    whose clock runs ahead must not win until that time is reached (WEBHOOKS 5.3).
    """
    taken = BuiltEvents([], [], [])
    for outcome in outcomes:
        if isinstance(outcome, IgnoredDelivery):
            taken.ignored.append(outcome.reason)
        elif isinstance(outcome, ResyncAsked):
            _resync(name, outcome.scope, outcome.reason, rules, taken)
        elif len(taken.events) == MAX_ITEMS:
            _resync(name, "", f"more than {MAX_ITEMS} pages in one delivery", rules, taken)
            break
        else:
            when = moment if outcome.moment is None else outcome.moment
            version = None if when is None else min(max(when, 0), now_ms)
            event = _event(outcome, rules, version, taken.ignored)
            if event is not None:
                kind, locale = encodable(outcome.kind), encodable(outcome.locale)
                taken.events.append(replace(event, source=name, kind=kind, locale=locale))
    return taken._replace(ignored=[encodable(reason) for reason in taken.ignored[:MAX_REASONS]])


def _resync(name: str, scope: str, reason: str, rules: EventRules, taken: BuiltEvents) -> None:
    """Add a resync event for the pages below the path `scope`."""
    item = {"type": RESYNC} | ({"prefix": rules.base.origin + scope} if scope else {})
    try:
        event = parse(item, rules)
    except InvalidError:  # no page of this site can have this path: resync the whole site
        event = parse({"type": RESYNC}, rules)
    taken.events.append(replace(event, source=name))
    taken.resyncs.append(reason)


def _event(
    change: PageChange, rules: EventRules, version: int | None, reasons: list[str]
) -> Event | None:
    item = dict(change.item)
    if version is not None:
        item.setdefault("version", version)
    for _ in range(3):
        try:
            return parse(item, rules)
        except InvalidError as error:
            reasons += [f"{fault.field}: {fault.detail}" for fault in error.faults[:MAX_REASONS]]
            wrong = {fault.field.partition(".")[0].partition("[")[0] for fault in error.faults}
        if wrong & _NAMED or ("loc" in wrong and item.get("id") is None):
            return None
        if "loc" in wrong:
            # Its present URL cannot be listed, and it is no longer at the previous one.
            item = {n: v for n, v in item.items() if n in {"id", "version"}} | {"type": "delete"}
            continue
        if not wrong & item.keys():
            wrong = {"section"}  # a news section requires fields that this page lacks
        item = {name: value for name, value in item.items() if name not in wrong}
    return None
