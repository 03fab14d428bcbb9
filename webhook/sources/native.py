"""The native format: one event, a JSON array of events, or one event per line (DESIGN 6).

Pure: bytes in; events, RefusedError or InvalidError out.
"""

from __future__ import annotations

from shared.errors import Fault, InvalidError
from shared.events import Event, Rules, parse
from webhook import body, wire
from webhook.problems import MAX_FAULTS

MEDIA_TYPES = wire.JSON | wire.NDJSON


def events(content: bytes, media_type: str, rules: Rules) -> list[Event]:
    """The events of one request, all of them valid.

    InvalidError names the faults of every item, up to MAX_FAULTS (RELIABILITY T10); RefusedError
    where the body is no strict JSON or holds too many items.
    """
    items = body.lines(content) if media_type in wire.NDJSON else body.batch(content)
    taken: list[Event] = []
    faults: list[Fault] = []
    for position, item in enumerate(items):
        try:
            taken.append(parse(item, rules, position))
        except InvalidError as error:
            faults.extend(error.faults)
            if len(faults) >= MAX_FAULTS:
                break
    if faults:
        raise InvalidError(*faults[:MAX_FAULTS])
    return taken
