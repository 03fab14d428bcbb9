"""CloudEvents 1.0 over HTTP: structured, batched and binary (WEBHOOKS 3).

The data is an event of the native interface; its `type` may follow from the CloudEvent's. An id is
required, never generated: without it a repeated delivery could not be recognized.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple
from urllib.parse import unquote

from shared.cms.pages import PageChange
from shared.errors import DateError, Fault, InvalidError
from shared.events.event import Event, parse_all
from shared.events.event_fields import MAX_ID, TYPES, EventRules
from shared.sitemap import w3c_dates
from webhook import request_body
from webhook.problems import MAX_FAULTS, RefusedError
from webhook.sources import standard
from webhook.sources.adapter import (
    AdapterContext,
    Delivery,
    IgnoredDelivery,
    Outcome,
    Proof,
    SenderSecrets,
)
from webhook.sources.guides import RUN, Guide, documented

NAME = "cloudevents"
STRUCTURED = "application/cloudevents+json"
BATCH = "application/cloudevents-batch+json"
CLOUD_TYPES = frozenset({STRUCTURED, BATCH})
MEDIA_TYPES = request_body.JSON | CLOUD_TYPES

GUIDE = Guide(
    title="CloudEvents 1.0",
    credential="a token of this site as Bearer, or a secret by Standard Webhooks",
    place="the Bearer token that you send",
    steps="""\
1. Send to  {address}  or to the address of native events, with
   authorization: Bearer TOKEN  (`tokens` in sitemapd.toml), or signed with  {secret}
2. data: an event as in /openapi.json. Its `type` may be left out where that of the CloudEvent ends
   in .upsert, .created, .updated, .published, .delete, .deleted, .removed or .unpublished; `id`
   may be left out where `subject` is the id of the page, and so may all the data of a delete.""",
    sends="structured, batched or binary events; source and id tell repeated ones",
    caveats="application/cloudevents+json, application/cloudevents-batch+json, or JSON with ce-"
    " headers; no Avro, no XML, no data_base64; a body in chunks is answered 411: with the"
    " JavaScript SDK use emitterFor and fetch, for its httpTransport announces no length",
    evidence={
        "the forms, data or none, repeats, refused chunks": RUN,
        "what the forms mean": documented(
            "https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/bindings/http-protocol-binding.md"
        ),
    },
)

_UPSERT = frozenset({"upsert", "created", "updated", "changed", "published"})
_DELETE = frozenset({"delete", "deleted", "removed", "unpublished"})
_ATTRIBUTE = re.compile(r"[^\x00-\x1f\x7f\ud800-\udfff]{1,512}")


class Cloud(NamedTuple):
    """One CloudEvent: its context attributes and its data."""

    attributes: Mapping[str, Any]
    data: object


def verify(hook: Delivery, keys: SenderSecrets, now: float) -> Proof:
    """Verify as `standard.verify` does. Without the sender's delivery id, the source and id of the
    event become the delivery id, so that repeats are recognized with a token, too.
    """
    proved = standard.verify(hook, keys, now)
    if proved.delivery is None:
        with suppress(RefusedError):  # `translate` refuses unreadable bodies
            return proved._replace(delivery=delivery(read(hook)))
    return proved


def read(hook: Delivery) -> list[Cloud]:
    """Return the CloudEvents of a request. Raises RefusedError if it holds none."""
    kind = hook.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind in CLOUD_TYPES:
        found = request_body.batch(hook.body)
        if kind == STRUCTURED and len(found) != 1:
            raise RefusedError("json", f"send several events as {BATCH}")
        return [Cloud(one if isinstance(one, dict) else {}, _data(one)) for one in found]
    if request_body.CLOUD_HEADER not in hook.headers:
        raise RefusedError("malformed", f"send {STRUCTURED}, {BATCH}, or the ce- headers")
    given = {
        name.removeprefix("ce-"): unquote(value)
        for name, value in hook.headers.items()
        if name.startswith("ce-")
    }
    if not hook.body:
        return [Cloud(given, None)]
    found = request_body.batch(hook.body)
    if len(found) != 1:
        raise RefusedError("json", f"send several events as {BATCH}")
    return [Cloud(given, found[0])]


def _data(one: object) -> object:
    return one.get("data") if isinstance(one, dict) else None


def changes(events: list[Cloud]) -> list[PageChange]:
    """Return the page changes of `events`. Raises InvalidError with every fault of every event."""
    faults: list[Fault] = []
    found: list[PageChange] = []
    for position, event in enumerate(events):
        wrong = list(_faults(event))
        faults += [Fault(field, "CloudEvents 1.0", why, position) for field, why in wrong]
        if not wrong:
            found.append(_change(event))
    if faults:
        raise InvalidError(*faults)
    return found


def _faults(event: Cloud) -> Iterable[tuple[str, str]]:
    attributes = event.attributes
    if attributes.get("specversion") != "1.0":
        yield "specversion", "must be 1.0"
    for name in ("id", "source", "type"):
        value = attributes.get(name)
        if not isinstance(value, str) or not _ATTRIBUTE.fullmatch(value):
            yield name, "must be a text of 1 to 512 characters"
    if not isinstance(attributes.get("subject"), (str, type(None))):
        yield "subject", "must be a text"
    if "data_base64" in attributes:
        yield "data_base64", "send the event as JSON in data"
    elif not isinstance(event.data, dict) and not _deletes_its_subject(event):
        yield "data", "must be an event: an object with a loc or an id; or a delete, its `subject`"


def _deletes_its_subject(event: Cloud) -> bool:
    """Return True if the event needs no data: its type deletes the page that `subject` names."""
    kind, subject = event.attributes.get("type"), event.attributes.get("subject")
    named = isinstance(subject, str) and subject != ""
    return event.data is None and named and isinstance(kind, str) and _last(kind) in _DELETE


def _last(kind: str) -> str:
    return re.split(r"[./:-]", kind)[-1].lower()


def _change(event: Cloud) -> PageChange:
    attributes = event.attributes
    item = dict(event.data) if isinstance(event.data, dict) else {}
    last = _last(attributes["type"])
    if "type" not in item and (last in _UPSERT or last in _DELETE):
        item["type"] = TYPES[0] if last in _UPSERT else TYPES[1]
    subject = attributes.get("subject")
    if item.get("id") is None and isinstance(subject, str) and 0 < len(subject) <= MAX_ID:
        item["id"] = subject
    try:
        time = attributes.get("time")
        moment = w3c_dates.epoch_ms(time) if isinstance(time, str) else None
    except DateError:
        moment = None
    return PageChange(item, attributes["source"], "", moment)


def delivery(events: list[Cloud]) -> str | None:
    """Return the source and id of a single event; None for a batch, which only a sender's id
    identifies.
    """
    if len(events) != 1:
        return None
    source, ident = events[0].attributes.get("source"), events[0].attributes.get("id")
    named = isinstance(source, str) and isinstance(ident, str)
    return f"{source} {ident}" if named else None


def events(
    hook: Delivery, rules: EventRules, now_ms: int
) -> tuple[list[Event], list[Fault], str | None]:
    """Return the events of CloudEvents sent to the native interface, all of them valid, warnings
    for their sender, and the source and id of a single one.

    Their ids are unique within their source; their time is the version of an event that has none,
    capped at `now_ms` (ms since 1970). Raises InvalidError, RefusedError.
    """
    found = read(hook)
    sent = changes(found)
    parsed, warnings = parse_all([change.item for change in sent], rules, MAX_FAULTS)
    events = [
        replace(event, source=NAME, kind=change.kind, version=_version(event, change, now_ms))
        for event, change in zip(parsed, sent, strict=True)
    ]
    return events, warnings, delivery(found)


def _version(event: Event, change: PageChange, now_ms: int) -> int | None:
    if event.version is not None or change.moment is None:
        return event.version
    return min(change.moment, now_ms)


def translate(hook: Delivery, _config: AdapterContext) -> Iterable[Outcome]:
    """Yield the page changes of all valid events of the delivery; the others are ignored. Raises
    RefusedError if the body cannot be read.
    """
    for event in read(hook):
        try:
            yield from map(standard.guarded, changes([event]))
        except InvalidError as error:
            yield IgnoredDelivery(
                "; ".join(f"{fault.field}: {fault.detail}" for fault in error.faults)
            )
