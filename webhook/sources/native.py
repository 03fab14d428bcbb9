"""The native format: one event, a JSON array of events, or one event per line (DESIGN 6).

Pure: bytes in; events, RefusedError or InvalidError out.
"""

from __future__ import annotations

from shared.errors import Fault, InvalidError
from shared.events import Event, parse
from shared.members import Rules
from webhook import body, wire
from webhook.problems import MAX_FAULTS

MEDIA_TYPES = wire.JSON | wire.NDJSON


def events(content: bytes, media_type: str, rules: Rules) -> tuple[list[Event], list[Fault]]:
    """The events of one request, all of them valid, and what their sender should know.

    InvalidError names the faults of every item, up to MAX_FAULTS (RELIABILITY T10); RefusedError
    where the body is no strict JSON or holds too many items. Warnings are up to MAX_FAULTS too.
    """
    items = body.lines(content) if media_type in wire.NDJSON else body.batch(content)
    taken: list[Event] = []
    faults: list[Fault] = []
    warnings: list[Fault] = []
    for position, item in enumerate(items):
        try:
            taken.append(parse(item, rules, position, warnings))
        except InvalidError as error:
            faults.extend(error.faults)
            if len(faults) >= MAX_FAULTS:
                break
    if faults:
        raise InvalidError(*faults[:MAX_FAULTS])
    return taken, warnings[:MAX_FAULTS]
