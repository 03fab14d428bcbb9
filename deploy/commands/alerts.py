"""The commands `alerts`, `alerts list` and `alerts test`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from deploy.cli.examples import examples
from deploy.cli.output import (
    HomeOption,
    JsonOption,
    answer,
    find_any,
    line,
    show,
    table,
)
from deploy.commands.admin import recorded
from shared.alerts import lifecycle, messages
from shared.clock import now_ms
from shared.errors import ConfigError, CredentialError, Fault, OutboundError
from shared.sitemap import w3c_dates
from shared.store.operations.alert_store import AlertBoard, AlertStore, ChannelHealth

if TYPE_CHECKING:
    from shared.alerts.messages import AlertMessage

OFF = "no channel is configured: add [alerts.email], [alerts.webhook] or [alerts.slack]"

app = typer.Typer(help="Alerts by e-mail, Slack, signed webhooks: list and test.")


@app.callback(invoke_without_command=True)
@examples("sitemapd alerts", "sitemapd alerts --json")
def alerts(context: typer.Context, home: HomeOption = None, as_json: JsonOption = False) -> None:
    """List the active alerts, and what the channels do with their messages."""
    if context.invoked_subcommand is None:
        list_(home, as_json)


@app.command("list")
@examples("sitemapd alerts list", "sitemapd alerts list --json")
def list_(home: HomeOption = None, as_json: JsonOption = False) -> None:
    """List the active alerts, and what the channels do with their messages."""
    place = find_any(home)
    board = AlertStore(place.client(), "cli").board()
    active = lifecycle.active(board.alerts)
    rows = [messages.described(key, each) | {"told": each.told} for key, each in active.items()]
    channels = [_described(name, board) for name in place.settings.alerts.channels]
    if as_json:
        answer({"alerts": rows, "channels": channels}, as_json=True)
        return
    if rows:
        head = ("site", "condition", "since", "reason", "what to do")
        show(table(head, (
            (row["site"] or "all", row["title"], row["since"], row["said"], row["todo"])
            for row in rows
        )))  # fmt: skip
    else:
        line("no alert is active")
    if not channels:
        line(OFF, style="yellow")
    for each in channels:
        said = f"last message {each['arrived']}" if each["arrived"] else "no message yet"
        if failing := each["failures"]:
            said = f"{failing} attempts failed: {each['reason']}"
        waiting = f"; {each['waiting']} waiting" if each["waiting"] else ""
        given_up = f"; {each['given_up']} given up" if each["given_up"] else ""
        style = "red" if failing else ""
        line(f"{each['channel']}: {said}{waiting}{given_up}", style=style)


@app.command("test")
@examples("sitemapd alerts test", "sitemapd alerts test --channel email")
def try_out(
    channel: Annotated[
        list[str] | None, typer.Option("--channel", help="channels; default: all configured ones")
    ] = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Send a test message through every channel, and say for each what happened. Exit code 1 if it
    did not arrive everywhere.
    """
    import secrets
    import socket

    from worker.alerts.channels import senders

    place = find_any(home)
    configured = senders(place.settings.alerts)
    if unknown := [name for name in channel or () if name not in configured]:
        detail = f"not configured; there are: {', '.join(configured) or 'none'}"
        raise ConfigError(Fault(", ".join(unknown), "config", detail))
    if not configured:
        raise ConfigError(Fault("alerts", "config", OFF))
    name = place.settings.alerts.name or socket.gethostname()
    message = messages.AlertMessage(f"alert_{secrets.token_hex(8)}", name, now_ms())
    client = place.client()
    found = []
    with recorded(client, "alerts test", "") as said:
        for each in channel or configured:
            arrived, reason = _sent(configured[each], message)
            if arrived:
                AlertStore(client, "cli").tested(each, now_ms())
            found.append({"channel": each, "arrived": arrived, "said": reason})
            said(f"{each}: {reason}")
    if as_json:
        answer(found, as_json=True)
    else:
        for row in found:
            line(f"{row['channel']}: {row['said']}", style="" if row["arrived"] else "red")
    raise typer.Exit(0 if all(row["arrived"] for row in found) else 1)


def _sent(sender: Any, message: AlertMessage) -> tuple[bool, str]:
    """Send `message`; return whether it arrived, and the answer or the reason."""
    try:
        return True, sender.send(message)
    except (OutboundError, CredentialError) as error:
        return False, str(error)


def _described(name: str, board: AlertBoard) -> dict[str, Any]:
    health = board.channels.get(name, ChannelHealth())
    waiting = sum(1 for each in board.messages.values() if name in each.channels)
    arrived = w3c_dates.from_epoch_s(health.arrived_ms // 1000) if health.arrived_ms else None
    return {
        "channel": name, "failures": health.failures, "reason": health.reason,
        "arrived": arrived, "waiting": waiting, "given_up": health.given_up,
    }  # fmt: skip
