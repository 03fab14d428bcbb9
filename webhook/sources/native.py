"""The native format: one event, a JSON array of events, or one event per line (DESIGN 6); and
CloudEvents whose data are such events.

Pure: bytes in; events, RefusedError or InvalidError out.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from shared.errors import Fault, InvalidError
from shared.events.event import Event, parse
from shared.events.event_fields import EventRules
from webhook import request_body
from webhook.problems import MAX_FAULTS
from webhook.sources import cloudevents
from webhook.sources.adapter import Delivery, PageChange

MEDIA_TYPES = request_body.JSON | request_body.NDJSON


def events(content: bytes, media_type: str, rules: EventRules) -> tuple[list[Event], list[Fault]]:
    """Return the events of one request, all of them valid, and warnings for their sender.

    Raises InvalidError with the faults of every item, up to MAX_FAULTS (RELIABILITY T10), and
    RefusedError if the body is no strict JSON or holds too many items. At most MAX_FAULTS warnings.
    """
    items = (
        request_body.lines(content)
        if media_type in request_body.NDJSON
        else request_body.batch(content)
    )
    return _events([(item, None) for item in items], rules, 0)


def clouds(
    hook: Delivery, rules: EventRules, now_ms: int
) -> tuple[list[Event], list[Fault], str | None]:
    """Return the events and warnings of CloudEvents, and the source and id of a single one.

    Their ids are unique within their source; their time is the version of an event that has none,
    capped at `now_ms` (ms since 1970). Raises InvalidError, RefusedError.
    """
    found = cloudevents.read(hook)
    changes = cloudevents.changes(found)
    taken, warnings = _events([(change.item, change) for change in changes], rules, now_ms)
    return taken, warnings, cloudevents.delivery(found)


def _events(
    items: Iterable[tuple[object, PageChange | None]], rules: EventRules, now_ms: int
) -> tuple[list[Event], list[Fault]]:
    taken: list[Event] = []
    faults: list[Fault] = []
    warnings: list[Fault] = []
    for position, (item, change) in enumerate(items):
        try:
            event = parse(item, rules, position, warnings)
        except InvalidError as error:
            faults.extend(error.faults)
            if len(faults) >= MAX_FAULTS:
                break
            continue
        taken.append(event if change is None else _sent_by(event, change, now_ms))
    if faults:
        raise InvalidError(*faults[:MAX_FAULTS])
    return taken, warnings[:MAX_FAULTS]


def _sent_by(event: Event, change: PageChange, now_ms: int) -> Event:
    version = event.version
    if version is None and change.moment is not None:
        version = min(change.moment, now_ms)
    return replace(event, source=cloudevents.NAME, kind=change.kind, version=version)
