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
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from deploy.cli.addresses import ToOption
from deploy.cli.examples import examples
from deploy.cli.output import (
    CommandTarget,
    HomeOption,
    JsonOption,
    SiteOption,
    answer,
    block,
    find,
    line,
)
from deploy.commands import event_options as options
from deploy.commands.event_watch import EventWatch, since
from deploy.commands.history import list_, replay, show
from shared.errors import (
    ConfigError,
    Fault,
    InvalidError,
    OutboundError,
    SitemapdError,
)

app = typer.Typer(help="Send, inspect and replay change events.", no_args_is_help=True)
UPSERT = "upsert"

app.command("list")(list_)
app.command("show")(show)
app.command("replay")(replay)


class NotAcceptedError(SitemapdError):
    """The webhook did not accept the event."""


@app.command("example")
@examples("sitemapd event example", "sitemapd event example --to https://hooks.example.com")
def example(
    to: ToOption = None,
    home: HomeOption = None,
    site: SiteOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print shell lines that send one signed event. They show a secret of the site."""
    place = find(home, site)
    from deploy.local.first_run.first_event import signed_example

    lines = signed_example(place.settings, place.name, to or place.site.base.origin)
    if as_json:
        answer({"site": place.name, "shell": lines}, as_json=True)
    else:
        block(lines)


@app.command("send")
@examples(
    "sitemapd event send https://www.example.com/about --watch",
    "sitemapd event send https://www.example.com/about --type delete --site shop",
)
def send(
    loc: options.LocArgument = None,
    type_: options.TypeOption = UPSERT,
    id_: options.IdOption = None,
    section: options.SectionOption = None,
    lastmod: options.LastmodOption = None,
    version: options.VersionOption = None,
    publish_at: options.PublishAtOption = None,
    expires: options.ExpiresOption = None,
    status: options.StatusOption = None,
    redirect_to: options.RedirectToOption = None,
    noindex: options.NoindexOption = False,
    canonical: options.CanonicalOption = None,
    group: options.GroupOption = None,
    lang: options.LangOption = None,
    title: options.TitleOption = None,
    description: options.DescriptionOption = None,
    published: options.PublishedOption = None,
    changefreq: options.ChangefreqOption = None,
    priority: options.PriorityOption = None,
    prefix: options.PrefixOption = None,
    file: Annotated[
        Path | None,
        typer.Option(
            help="send the events of this JSON or NDJSON file, without other members; - for"
            " standard input"
        ),
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
    given = {
        "type": type_, "loc": loc, "id": id_, "section": section, "lastmod": lastmod,
        "version": int(version) if version and version.isdigit() else version,
        "publish_at": publish_at, "expires": expires, "status": status,
        "redirect_to": redirect_to, "noindex": noindex or None, "canonical": canonical,
        "group": group, "lang": lang or None, "title": title, "description": description,
        "published": published, "changefreq": changefreq, "priority": priority, "prefix": prefix,
    }  # fmt: skip
    members = {name: value for name, value in given.items() if value is not None}
    body = json.dumps(members) if file is None else _read(file, members)
    _send(place, to, body, watch=watch, as_json=as_json)


def _send(place: CommandTarget, to: str | None, body: str, *, watch: bool, as_json: bool) -> None:
    """Send events, and print each of their steps."""
    follow = EventWatch(place) if watch else None
    started = time.perf_counter()
    said = _post(place, to or place.site.base.origin, body.encode())
    steps = [{"step": "accepted", "what": ", ".join(said["ids"]), "ms": since(started)}]
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


def _read(file: Path, members: dict[str, Any]) -> str:
    """Return the events of a file. Raises InvalidError if `members` of another event are given."""
    if others := members.keys() - ({"type"} if members["type"] == UPSERT else set()):
        named = ", ".join(sorted(others))
        raise InvalidError(
            Fault("--file", "file", f"the file states the events: leave out {named}")
        )
    try:
        return sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise InvalidError(Fault("--file", "file", f"{file} is not UTF-8: {error}")) from None


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
