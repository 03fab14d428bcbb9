"""The command `connect`: guide for a CMS, wait for its first delivery, test of a captured one."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from deploy.cli.addresses import ToOption
from deploy.cli.examples import examples
from deploy.cli.output import (
    CommandTarget,
    FormerSite,
    HomeOption,
    JsonOption,
    SiteOption,
    answer,
    block,
    find,
    line,
    note,
)
from deploy.commands.event_watch import EventWatch
from shared.admin.outcomes import command
from shared.config.sites.cms_connections import STANDARD, Connection
from shared.errors import ConfigError, Fault, SitemapdError
from shared.events.event import NATIVE, Event, SchemaError
from shared.store.client import answering
from shared.store.keys import keys_of
from webhook.sources import payload, wagtail, wordpress
from webhook.sources.adapter import Adapter, AdapterContext, Delivery
from webhook.sources.event_builder import BuiltEvents, take
from webhook.sources.registry import REGISTRY

WAIT_S = 600.0
SHOWN = ("type", "id", "loc", "section", "lastmod", "kind", "locale", "canonical", "noindex")

CLIENTS = {wagtail.NAME: wagtail.CLIENT, payload.NAME: payload.CLIENT}


class NothingError(SitemapdError):
    """No delivery arrived within WAIT_S, or none of its parts was about a page."""


@examples("sitemapd connect ghost", "sitemapd connect wordpress --site shop --wait")
def connect(
    cms: Annotated[
        str,
        typer.Argument(
            help=f"one of {', '.join(sorted(REGISTRY))}",
            autocompletion=lambda: sorted(REGISTRY),
        ),
    ],
    former: FormerSite = None,
    to: ToOption = None,
    wait: Annotated[bool, typer.Option("--wait", help="wait for the first delivery")] = False,
    captured: Annotated[
        Path | None, typer.Option("--try", help="show the result of a captured body or request")
    ] = None,
    header: Annotated[
        list[str] | None,
        typer.Option("--header", help="header of the request for --try, as 'Name: value'"),
    ] = None,
    client: Annotated[bool, typer.Option("--client", help="print only the client file")] = False,
    home: HomeOption = None,
    site: SiteOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show how to connect a CMS to a site; wait for its first delivery; test a captured one.

    The output shows the secret.
    """
    if cms not in REGISTRY:
        known = ", ".join(sorted(REGISTRY))
        raise ConfigError(Fault("cms", "config", f"{cms} is not supported; choose one of: {known}"))
    adapter, place = REGISTRY[cms], find(home, site or former)
    if captured is not None:
        _try(adapter, place, _hook(captured, header or []), as_json=as_json)
    elif client:
        code = CLIENTS.get(cms, "")
        answer({"cms": cms, "client": code}, as_json=True) if as_json else block(code)
    else:
        watch = EventWatch(place) if wait else None
        _guide(adapter, place, to or place.settings.public_url, as_json=as_json)
        if watch is not None:
            _wait(adapter, place, watch, as_json=as_json)


def _guide(adapter: Adapter, place: CommandTarget, to: str, *, as_json: bool) -> None:
    guide, name = adapter.GUIDE, adapter.NAME
    origin = (to or place.site.base.origin).rstrip("/")
    address = f"{origin}/v1/sites/{place.name}/hooks/{name}"
    secret, missing = _secret(adapter, place)
    steps = guide.steps.format(address=address, origin=origin, site=place.name, secret=secret)
    known = "; ".join(f"{claim}: {source}" for claim, source in guide.evidence.items())
    if as_json:
        answer({"cms": name, "site": place.name, "address": address, "secret": secret,
                "steps": steps, "config": missing, "assumed": not to, "known": known},
               as_json=True)  # fmt: skip
        return
    if not to:
        line(f"# {origin} assumes that the host of the site forwards /v1/ to sitemapd.")
        line("# Another address: --to https://hooks.example.com, or public_url in sitemapd.toml")
    if missing:
        line(f"# first, in {place.home / 'sitemapd.toml'}, then restart the webhook")
        block(f"{missing}\n\n")
    line(f"# {guide.title}, to {address}")
    block(f"# the secret: {guide.credential}\n\n{steps}\n\n")
    block(f"It sends {guide.sends}.\nLimits: {guide.caveats}.\n\n")
    line(f"Then: {command('connect', name, '--wait', site=place.name)}")
    line(f"Evidence: {known}")


def _secret(adapter: Adapter, place: CommandTarget) -> tuple[str, str]:
    """Return the secret to enter in the CMS, and the configuration that is missing for it."""
    name = adapter.NAME
    connection = place.site.sources.get(name)
    if connection is not None and connection.secret:
        return connection.secret[0].get_secret_value(), ""
    if name in STANDARD:
        now = datetime.now(UTC)
        live = [one for one in place.site.secrets if one.key(now) is not None]
        table = f"[sites.{place.name}.sources.{name}]\n{adapter.GUIDE.config}"
        missing = table if adapter.GUIDE.config and connection is None else ""
        if live:
            return live[0].secret.get_secret_value(), missing
        return "whsec_... (`sitemapd secret` makes one; add it to `secrets`)", missing
    made = secrets.token_urlsafe(32)
    if not adapter.GUIDE.chosen:
        made = "..."
    elif name == "datocms":
        made = f"sitemapd:{made}"
    lines = [f"[sites.{place.name}.sources.{name}]", f'secret = "{made}"', adapter.GUIDE.config]
    return made, "\n".join(line for line in lines if line)


def _hook(path: Path, given: list[str]) -> Delivery:
    """Return a captured delivery: its body, or an object with `headers` and `body_raw`. Raises
    ConfigError if the file cannot be read or a header is malformed.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ConfigError(Fault(str(path), "config", f"cannot be read: {error.strerror}")) from None
    headers = {"content-type": "application/json"}
    try:
        record = json.loads(content)
        if isinstance(record, dict) and isinstance(record.get("body_raw"), str):
            content = record["body_raw"].encode()
            headers |= {str(name).lower(): str(value) for name, value in record["headers"]}
    except (ValueError, KeyError, TypeError):
        pass  # another kind of body, which the adapter judges
    for each in given:
        name, colon, value = each.partition(":")
        if not colon:
            raise ConfigError(Fault("--header", "config", f"write 'Name: value', not {each!r}"))
        headers[name.strip().lower()] = value.strip()
    return Delivery("POST", "", headers, content)


def _try(adapter: Adapter, place: CommandTarget, hook: Delivery, *, as_json: bool) -> None:
    """Print the events that a delivery would become; nothing is verified, sent or stored. Raises
    NothingError if there are none.
    """
    found = place.site.sources.get(adapter.NAME) or Connection.model_validate({})
    config = AdapterContext(adapter.NAME, found, place.site.rules)
    taken = take(adapter.NAME, adapter.translate(hook, config), place.site.rules, None, 0)
    _said(taken, as_json=as_json)
    if not taken.events:
        raise NothingError("it would be ignored")


def _said(taken: BuiltEvents, *, as_json: bool) -> None:
    events = [_shown(event) for event in taken.events]
    if as_json:
        said = {"events": events, "ignored": taken.ignored, "resync": taken.resyncs}
        answer(said, as_json=True)
        return
    ignored = ({"ignored": reason} for reason in taken.ignored)
    resyncs = ({"resync": reason} for reason in taken.resyncs)
    answer([*events, *ignored, *resyncs], as_json=False)


def _shown(event: Event) -> dict[str, Any]:
    return {name: value for name in SHOWN if (value := getattr(event, name))}


def _wait(adapter: Adapter, place: CommandTarget, watch: EventWatch, *, as_json: bool) -> None:
    """Print the events of the first delivery, and their processing.

    Refusals before it are printed, too: the sender of a refused request is unknown, so each may be
    the expected one.
    """
    started = time.perf_counter()
    for found in _arrivals(adapter.NAME, place):
        if isinstance(found, Event):
            answer(_shown(found), as_json=as_json)
            continue
        if isinstance(found, dict) and "code" in found:
            answer({"refused": _refusal(found, adapter)}, as_json=as_json)
            continue
        if isinstance(found, dict):
            answer({"ignored": "; ".join(found["reasons"] or ["it requests a reconcile"])},
                   as_json=as_json)  # fmt: skip
            return
        for step in watch.steps(found, started):
            answer({step["step"]: step["what"]}, as_json=as_json)
        return


def _refusal(note: dict[str, Any], adapter: Adapter) -> str:
    """Return the refusal, with its remedy in the words of the sender's interface."""
    said = f"{note.get('status', '')} {note['code']}".strip()
    if note["code"] == "unauthorized":
        return f"{said}: {adapter.GUIDE.unproven}"
    faults = [f"{fault['field']}: {fault['detail']}" for fault in note.get("faults", [])]
    return f"{said}: {'; '.join(faults) or note.get('reason', '')}"


def _arrivals(name: str, place: CommandTarget) -> Iterator[Event | dict[str, Any] | list[str]]:
    """Yield refusals as they occur; the events of the first delivery of `name`, then their ids; or
    the note of an ignored delivery.

    Raises NothingError after WAIT_S seconds.
    """
    names = {name, NATIVE} if name == wordpress.NAME else {name}  # its plugin sends native events
    store, keys = place.client(), keys_of(place.name)
    after: dict[Any, Any] = {}
    with answering():
        for stream in (keys.inbox, keys.recent, keys.refused):
            last: Any = store.xrevrange(stream, count=1)
            after[stream] = last[0][0] if last else b"0"
    note(f"waiting for {WAIT_S / 60:.0f} minutes, or until Ctrl-C")
    deadline = time.monotonic() + WAIT_S
    while time.monotonic() < deadline:
        with answering():
            reply: Any = store.xread(after, block=1000)
        ids: list[str] = []
        for stream, entries in reply:
            after[stream.decode()] = entries[-1][0]
            for ident, fields in entries:
                event = _event(fields)
                if b"refused" in fields:
                    yield json.loads(fields[b"refused"])
                if event is not None and event.source in names:
                    ids.append(ident.decode())
                    yield event
                said = json.loads(fields.get(b"ignored", b"{}"))
                if said.get("source") == name and not said["accepted"]:
                    yield said
                    return
        if ids:
            yield ids
            return
    raise NothingError(f"no delivery was accepted within {WAIT_S / 60:.0f} minutes")


def _event(fields: dict[bytes, bytes]) -> Event | None:
    try:
        return Event.load(fields[b"e"]) if b"e" in fields else None
    except SchemaError:
        return None
