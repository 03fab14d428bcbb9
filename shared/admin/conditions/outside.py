"""Conditions outside of sitemapd: its senders, the search engines, a source that is asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from shared.admin.conditions.concern import WARN, Concern, command_line, many
from shared.admin.site_signs import SiteSigns
from shared.clock import span
from shared.store.operations.queues import INTAKE, NOTIFY
from shared.store.operations.recent_refusals import MINUTES

STILL_S = 15 * 60
"""Seconds after which a notification that is due and was not tried is a concern."""
TRIES = 3
"""Attempts in a row that failed at an engine before that is a concern."""
REFUSED = 10
"""Refused deliveries of one kind within MINUTES before they are a concern."""

_REFUSALS = {
    "unauthorized": ("bad signature", "rotate its secret, or fix the sender"),
    "stale": ("old or early signature", "set the clock of the sender"),
    "rate-limited": ("delivery above the rate", "slow the sender down, or raise `rate`"),
    "inbox-full": ("delivery to a full inbox", "start more workers"),
}
"""What a code of a refusal means in an alarm, and the remedy; others say their code."""
_NO_FAULT = {"closed", "conflict"}
"""Refusals that are no alarm: an administrator closed the intake; a first delivery stands."""


def _refused(signs: SiteSigns) -> Iterator[Concern]:
    for code, count in signs.refused.counts.items():
        if count < REFUSED or code in _NO_FAULT:
            continue
        what, todo = _REFUSALS.get(code, (f"delivery refused as {code}", "fix the sender"))
        several = what.replace("delivery", "deliveries") if "delivery" in what else f"{what}s"
        client = signs.refused.clients.get(code, "")
        said = f"{count:,} {several} in {MINUTES} minutes"
        yield Concern(
            "refused", signs.site, WARN, f"{said}, most of them from {client}." if client
            else f"{said}.", f"{todo[:1].upper()}{todo[1:]}.",
            page="events", label="Refused deliveries",
        )  # fmt: skip


def _engines(signs: SiteSigns) -> Iterator[Concern]:
    if NOTIFY in signs.status["paused"]:
        return
    for each in signs.engines:
        breaker, now_ms = each.breaker, int(signs.now_s * 1000)
        waited_s = 0.0 if each.due_ms is None else signs.now_s - each.due_ms / 1000
        if breaker and (breaker.paused or breaker.failures >= TRIES):
            times = f" {breaker.failures} times in a row" if breaker.failures > 1 else ""
            said = f"{each.engine} refused{times}: {breaker.why}."
            todo = (
                "Nothing is sent until it is resumed." if breaker.paused else "It is tried again."
            )
        elif waited_s > STILL_S and not (breaker and breaker.open(now_ms)):
            said = f"{each.engine} stands still: what it is to be told has waited {span(waited_s)}."
            todo = "No attempt was made: check that a worker is alive."
        else:
            continue
        yield Concern(
            "engine", signs.site, WARN, said, todo, page="notifications", label="Notifications"
        )


def _silent(signs: SiteSigns) -> Iterator[Concern]:
    hours = signs.accepted.silent
    if hours is not None and INTAKE not in signs.status["paused"]:
        since = max(3600.0 * hours, signs.now_s - signs.accepted.last_ms / 1000)
        said = f"No event for {span(since)}, against the habit of its sender."
        todo = "In each of the weeks before there were events in these hours: check the CMS."
        yield Concern("silent", signs.site, WARN, said, todo, page="events", label="Last events")


def _unknown(signs: SiteSigns) -> Iterator[Concern]:
    for each in signs.late:
        yield Concern(
            "unknown", signs.site, WARN, each.said, "This command lists them:",
            (*command_line(signs.site, "readback"), "--unknown"), "index_status", "Index status",
        )  # fmt: skip


def _resync(signs: SiteSigns) -> Iterator[Concern]:
    if asked := signs.status["resync"]:
        said = f"{many(len(asked), 'resync')} waits for a comparison with the source."
        more = () if signs.sourced else ("--against", "SOURCE")
        todo = "" if signs.sourced else "The site has no source configured: add one."
        yield Concern(
            "resync", signs.site, WARN, said, todo, (*command_line(signs.site, "reconcile"), *more)
        )


CONDITIONS: tuple[Callable[[SiteSigns], Iterator[Concern]], ...] = (
    _refused, _engines, _silent, _unknown, _resync,
)  # fmt: skip
