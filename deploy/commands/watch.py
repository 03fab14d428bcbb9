"""`sitemapd status --watch`: a live view of the sites and their workers."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from itertools import count as numbers
from typing import Any, NamedTuple

from deploy.cli.long_lists import SHOWN
from deploy.cli.output import CommandTarget, print_json
from deploy.cli.tables import Grid, out, redrawn, show, table
from deploy.commands.workers import described, listed
from shared.admin.site_status import statuses, worst_first
from shared.errors import StoreError
from shared.store.operations.worker_registry import RegisteredWorker, WorkerRegistry

_COLUMNS = (
    "site", "pages", "waiting", "oldest", "in flight", "accepted/s", "published/s", "dirty", "for",
    "failed", "held", "last publish",
)  # fmt: skip


class WatchedState(NamedTuple):
    """The state at one moment (`at`: monotonic s); `error` if the store did not answer."""

    at: float
    sites: list[dict[str, Any]]
    workers: list[RegisteredWorker]
    error: str = ""


class Rates(NamedTuple):
    """Rates of one site between two refreshes, per second; None without an earlier one."""

    accepted: float | None
    publishes: float | None


def watch(
    place: CommandTarget,
    names: list[str],
    *,
    interval: float,
    looks: int | None,
    as_json: bool,
    whole: bool = False,
) -> None:
    """Show the state every `interval` seconds, `looks` times or until Ctrl-C.

    On a terminal one view is redrawn; elsewhere each refresh is a block of its own, or with
    `as_json` a line.
    """
    seen = _looks(place, names, interval, looks)
    with contextlib.suppress(KeyboardInterrupt):
        if as_json:
            _each(seen, lambda before, look: print_json(_as_json(before, look)))
        elif out.is_terminal:
            with redrawn() as draw:
                _each(seen, lambda before, look: draw(*view(before, look, whole=whole)))
        else:
            _each(seen, lambda before, look: show(*view(before, look, whole=whole)))


def _each(
    seen: Iterator[WatchedState], show: Callable[[WatchedState | None, WatchedState], None]
) -> None:
    before: WatchedState | None = None
    for look in seen:
        show(before, look)
        before = before if look.error else look


def _looks(
    place: CommandTarget, names: list[str], interval: float, most: int | None
) -> Iterator[WatchedState]:
    client = place.client()
    sites = {name: place.settings.sites[name] for name in names}
    workers = WorkerRegistry(client)
    for number in numbers(1):
        begun = time.monotonic()
        try:
            yield WatchedState(begun, statuses(client, sites), workers.list())
        except StoreError as error:  # the view shows failures, too
            yield WatchedState(begun, [], [], str(error))
        if number == most:
            return
        time.sleep(max(0.0, interval - (time.monotonic() - begun)))


def rates(before: WatchedState | None, look: WatchedState, at: int) -> Rates:
    """Return the rates of accepted events and of publishes of site number `at`."""
    if before is None or look.at <= before.at:
        return Rates(None, None)
    old, new, seconds = before.sites[at], look.sites[at], look.at - before.at

    def rate(name: str) -> float:
        # Less than before: the state was restored, or begun anew.
        return float(max(0, new[name] - old[name]) / seconds)

    return Rates(rate("accepted_events"), rate("publishes"))


def view(
    before: WatchedState | None, look: WatchedState, *, whole: bool = True
) -> list[Grid | str]:
    """Return one view for a terminal: of many sites the worst, or the `whole` table."""
    if look.error:
        return [f"no answer: {look.error}"]
    places = {each["site"]: at for at, each in enumerate(look.sites)}
    sites = look.sites if whole or len(places) <= SHOWN else worst_first(look.sites)[:SHOWN]
    rows = [_row(status, rates(before, look, places[status["site"]])) for status in sites]
    more = (
        [f"and {left:,} more sites; --all shows them"] if (left := len(places) - len(rows)) else []
    )
    return [
        table(_COLUMNS, rows),
        *more,
        "",
        listed(look.workers) if look.workers else "no worker",
        "",
    ]


def _row(status: Mapping[str, Any], rates: Rates) -> list[str]:
    return [
        status["site"], str(status["urls"]), str(status["waiting_events"]),
        _seconds(status["oldest_s"]), str(status["in_flight"]), _rate(rates.accepted),
        _rate(rates.publishes), str(status["dirty_files"]),
        _seconds(status["dirty_for_s"] if status["dirty_files"] else None),
        str(status["dead_events"]), str(len(status["held"])), status["last_publish"] or "never",
    ]  # fmt: skip


def _seconds(value: float | None) -> str:
    return "" if value is None else f"{value:.1f} s"


def _rate(value: float | None) -> str:
    return "" if value is None else f"{value:.1f}"


def _as_json(before: WatchedState | None, look: WatchedState) -> dict[str, Any]:
    if look.error:
        return {"error": look.error}
    sites = [
        status
        | {
            f"{name}_per_s": value and round(value, 2)
            for name, value in rates(before, look, at)._asdict().items()
        }
        for at, status in enumerate(look.sites)
    ]
    return {"sites": sites, "workers": [described(worker) for worker in look.workers]}
