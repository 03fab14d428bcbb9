"""From what an adapter understood to events that keep every rule. Pure.

A CMS cannot mend what it sends, and stops sending to who refuses it: what is wrong with one page
is left out and reported, and the rest of the delivery is taken.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

from shared.errors import InvalidError
from shared.events.event import Event, parse
from shared.events.event_fields import RESYNC, EventRules
from webhook.request.strict_json import MAX_ITEMS
from webhook.sources.adapter import IgnoredDelivery, Outcome, PageChange, ResyncAsked

_NAMED = frozenset({"type", "id"})
MAX_REASONS = 20
_LONGEST = 512


class BuiltEvents(NamedTuple):
    """The events of one delivery, why there are no more of them, and why some are resyncs."""

    events: list[Event]
    ignored: list[str]
    resyncs: list[str]


def take(
    name: str, outcomes: Iterable[Outcome], rules: EventRules, moment: int | None, now_ms: int
) -> BuiltEvents:
    """The events of `outcomes` from the sender `name`, which signed them at `moment` (ms).

    That is their version, where they have none of their own, but never later than now: whose clock
    runs ahead must not win for as long as that (WEBHOOKS 5.3).
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
                kind, locale = _plain(outcome.kind), _plain(outcome.locale)
                taken.events.append(replace(event, source=name, kind=kind, locale=locale))
    return taken._replace(ignored=[_plain(reason) for reason in taken.ignored[:MAX_REASONS]])


def _resync(name: str, scope: str, reason: str, rules: EventRules, taken: BuiltEvents) -> None:
    """Ask for what lies below the path `scope` to be compared with its source."""
    item = {"type": RESYNC} | ({"prefix": rules.base.origin + scope} if scope else {})
    try:
        event = parse(item, rules)
    except InvalidError:  # a path that no page of this site can have: then the whole site
        event = parse({"type": RESYNC}, rules)
    taken.events.append(replace(event, source=name))
    taken.resyncs.append(reason)


def _plain(text: str) -> str:
    """Text of a sender that any encoding takes: it may hold half a surrogate pair."""
    return text[:_LONGEST].encode("utf-8", "backslashreplace").decode()


def _event(
    change: PageChange, rules: EventRules, version: int | None, said: list[str]
) -> Event | None:
    item = dict(change.item)
    if version is not None:
        item.setdefault("version", version)
    for _ in range(3):
        try:
            return parse(item, rules)
        except InvalidError as error:
            said += [f"{fault.field}: {fault.detail}" for fault in error.faults[:MAX_REASONS]]
            wrong = {fault.field.partition(".")[0].partition("[")[0] for fault in error.faults}
        if wrong & _NAMED or ("loc" in wrong and item.get("id") is None):
            return None
        if "loc" in wrong:
            # It cannot be listed where it is now; where it was it is not any more.
            item = {n: v for n, v in item.items() if n in {"id", "version"}} | {"type": "delete"}
            continue
        if not wrong & item.keys():
            wrong = {"section"}  # a section for news wants what this page does not have
        item = {name: value for name, value in item.items() if name not in wrong}
    return None
