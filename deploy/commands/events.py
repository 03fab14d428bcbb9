"""The commands `event send` and `event example`. Commands about received events are in
deploy/commands/history.py.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from deploy.cli.output import (
    CommandTarget,
    HomeOption,
    JsonOption,
    SiteOption,
    ToOption,
    answer,
    block,
    find,
    line,
)
from deploy.commands.history import list_, replay, show
from shared.admin.site_status import Inspector
from shared.errors import (
    ConfigError,
    Fault,
    InvalidError,
    OutboundError,
    SitemapdError,
    StoreError,
)
from shared.store.client import answering
from shared.store.keys import Keys
from shared.store.operations import event_log
from shared.store.publishing.quarantine import Quarantine

if TYPE_CHECKING:
    import redis

WATCH_S = 30.0

app = typer.Typer(help="Send, inspect and replay change events.", no_args_is_help=True)
app.command("list")(list_)
app.command("show")(show)
app.command("replay")(replay)


class NotAcceptedError(SitemapdError):
    """The webhook did not accept the event."""


@app.command("example")
def example(
    to: ToOption = None,
    home: HomeOption = None,
    site: SiteOption = None,
) -> None:
    """Print shell lines that send one signed event. They show a secret of the site."""
    place = find(home, site)
    from deploy.local.first_config import signed_example

    block(signed_example(place.settings, place.name, to or place.site.base.origin))


@app.command("send")
def send(
    loc: Annotated[str | None, typer.Argument(help="URL of the page")] = None,
    type_: Annotated[str, typer.Option("--type", help="upsert or delete")] = "upsert",
    id_: Annotated[str | None, typer.Option("--id", help="the CMS's id of the page")] = None,
    section: Annotated[
        str | None, typer.Option(help="section of the page; default: by path and language")
    ] = None,
    lastmod: Annotated[str | None, typer.Option(help="W3C date or datetime")] = None,
    version: Annotated[
        str | None,
        typer.Option(help="version of the event: W3C datetime or milliseconds since 1970"),
    ] = None,
    noindex: Annotated[bool, typer.Option("--noindex", help="the page must not be listed")] = False,
    file: Annotated[
        Path | None,
        typer.Option(help="send the events of this JSON or NDJSON file; - for standard input"),
    ] = None,
    to: ToOption = None,
    watch: Annotated[
        bool, typer.Option("--watch", help="wait until the files are written, and show each step")
    ] = False,
    home: HomeOption = None,
    site: SiteOption = None,
    as_json: JsonOption = False,
) -> None:
    """Send one signed event to the webhook, and follow it until the files are written."""
    place = find(home, site)
    members = {
        "type": type_, "loc": loc, "id": id_, "section": section, "lastmod": lastmod,
        "version": int(version) if version and version.isdigit() else version,
        "noindex": noindex or None,
    }  # fmt: skip
    if file is None:
        body = json.dumps({name: value for name, value in members.items() if value is not None})
    else:
        body = _read(file)
    follow = EventWatch(place) if watch else None
    to = to or place.site.base.origin
    started = time.perf_counter()
    said = _post(place, to, body.encode())
    steps = [{"step": "accepted", "what": ", ".join(said["ids"]), "ms": _since(started)}]
    for what in _named(said, "warnings"):
        steps.append({"step": "warning", "what": what, "ms": steps[0]["ms"]})
    for step in steps:
        _step(step, as_json=as_json)
    if follow is not None:
        for step in follow.steps(said["ids"], started):
            steps.append(step)
            _step(step, as_json=as_json)
    if as_json:
        answer({"steps": steps}, as_json=True)


def _read(file: Path) -> str:
    try:
        return sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise InvalidError(Fault("--file", "file", f"{file} is not UTF-8: {error}")) from None


def _since(started: float) -> float:
    return round((time.perf_counter() - started) * 1000, 1)


def _step(step: dict[str, Any], *, as_json: bool) -> None:
    if not as_json:
        line(f"{step['step']:10} {step['what']}  ", (f"{step['ms']} ms", "dim"))


def _post(place: CommandTarget, to: str, body: bytes) -> dict[str, Any]:
    """Send `body` signed, or with a Bearer token if the site has no valid secret. Raises
    ConfigError without both, NotAcceptedError if the webhook does not accept it.
    """
    ident, now = f"msg_{secrets.token_hex(12)}", datetime.now(UTC)
    stamp = str(int(now.timestamp()))
    kind = "application/json" if body.lstrip()[:1] == b"[" or _single(body) else (
        "application/x-ndjson"
    )  # fmt: skip
    headers = {"content-type": kind, "webhook-id": ident}
    keys = [key for secret in place.site.secrets if (key := secret.key(now)) is not None]
    if keys:
        signed = b".".join((ident.encode(), stamp.encode(), body))
        mac = base64.b64encode(hmac.digest(keys[0], signed, hashlib.sha256)).decode()
        headers |= {"webhook-timestamp": stamp, "webhook-signature": f"v1,{mac}"}
    elif place.site.tokens:
        headers["authorization"] = f"Bearer {place.site.tokens[0].get_secret_value()}"
    else:
        raise ConfigError(Fault(f"sites.{place.name}", "config", "no valid secret and no token"))
    url = f"{to.rstrip('/')}/v1/sites/{place.name}/events"
    from worker.http.client import HttpClient
    from worker.http.exchange import INTAKE, OutboundRequest, configured

    request = OutboundRequest("POST", url, url, headers, body)
    try:
        client = HttpClient(configured(url), INTAKE, "sitemapd-send")
        with client, client.open(request) as reply:
            said: Any = json.loads(reply.body())
    except (OutboundError, ValueError) as error:
        raise NotAcceptedError(f"{url} does not answer as a webhook: {error}") from error
    if not isinstance(said, dict):
        raise NotAcceptedError(f"{url} does not answer as a webhook: {reply.status}")
    if not 200 <= reply.status < 300:
        faults = "; ".join(_named(said, "errors"))
        raise NotAcceptedError(
            f"{reply.status} {said.get('title')}: {faults or said.get('detail')}"
        )
    ids = said.get("ids")
    if not isinstance(ids, list) or not all(isinstance(each, str) for each in ids):
        raise NotAcceptedError(f"{url} does not answer as a webhook: the response has no ids")
    return said


def _named(said: dict[str, Any], member: str) -> list[str]:
    """Return the errors or warnings of a response, one text each, for any JSON value."""
    found = said.get(member) or []
    return [
        "{}: {} ({})".format(*map(each.get, ("field", "detail", "rule")))
        if isinstance(each, dict)
        else str(each)
        for each in (found if isinstance(found, list) else [found])
    ]


def _single(body: bytes) -> bool:
    try:
        json.loads(body)
    except ValueError:
        return False
    return True


class EventWatch:
    """Follows events through the event log."""

    def __init__(self, place: CommandTarget) -> None:
        self._client: redis.Redis = place.client()
        self._inspector = Inspector(self._client, place.name, place.site)
        self._recent = Keys(place.name).recent
        self._name, self._quarantine = place.name, Quarantine(self._client, place.name)
        with answering():
            last: Any = self._client.xrevrange(self._recent, count=1)
        self._after = last[0][0] if last else b"0"

    def steps(self, ids: list[str], started: float) -> Iterator[dict[str, Any]]:
        """Yield the steps of the events with these ids.

        `started` is a value of time.perf_counter. Raises StoreError after WATCH_S seconds without a
        result.
        """
        undecided, unpublished = set(ids), set[str]()
        deadline = time.monotonic() + WATCH_S
        while undecided or unpublished:
            if time.monotonic() > deadline:
                waits = "decided" if undecided else "published"
                raise StoreError(f"not {waits} within {WATCH_S:.0f} s: is a worker running?")
            news = self._news()
            for step in self._in_the_way(unpublished if not news and not undecided else set()):
                yield step | {"ms": _since(started)}
            for fields in news:
                if b"decided" in fields:
                    for ident, subject, reason, changed in event_log.unpack(fields[b"decided"])[0]:
                        if ident not in undecided:
                            continue
                        undecided.discard(ident)
                        yield {
                            "step": "decided", "what": f"{subject}: {reason}",
                            "ms": _since(started),
                        }  # fmt: skip
                        if changed:
                            unpublished |= self._shard(subject)
                    continue
                for step in self._published(json.loads(fields[b"published"]), unpublished):
                    yield step | {"ms": _since(started)}

    def _published(self, note: dict[str, Any], unpublished: set[str]) -> Iterator[dict[str, Any]]:
        """Yield what a publish did with `unpublished` files, and remove those from the set."""
        if held := unpublished & set(note.get("held", ())):
            unpublished -= held
            what = (
                f"{', '.join(sorted(held))}: the shrink guard holds this file, new pages and edits "
                f"with it, until: sitemapd confirm --site {self._name}"
            )
            yield {"step": "held", "what": what}
        if unpublished & set(note["shards"]):
            unpublished -= set(note["shards"])
            files = note["written"] + [f"{name} (removed)" for name in note["removed"]]
            yield {"step": "published", "what": ", ".join(files)}

    def _in_the_way(self, unpublished: set[str]) -> Iterator[dict[str, Any]]:
        """Yield the causes that block `unpublished` files, and remove those from the set."""
        if not unpublished:
            return
        stopped, single = self._quarantine.read()
        if stopped is not None:
            unpublished.clear()
            what = f"nothing is published: {stopped.reason}; {stopped.todo}"
            yield {"step": "stopped", "what": what}
        for shard, cause in single.items():
            if str(shard) in unpublished:
                unpublished.discard(str(shard))
                yield {"step": "set aside", "what": f"{shard}: {cause.reason}; {cause.todo}"}

    def _news(self) -> list[dict[bytes, bytes]]:
        with answering():
            reply: Any = self._client.xread({self._recent: self._after}, block=1000)
        entries = reply[0][1] if reply else []
        if entries:
            self._after = entries[-1][0]
        known = {b"decided", b"published"}  # without ignored deliveries of a CMS
        return [fields for _, fields in entries if known & fields.keys()]

    def _shard(self, subject: str) -> set[str]:
        page = self._inspector.page(subject)
        shard = self._inspector.shard_of(page) if page else None
        return {str(shard)} if shard else set()
