"""Conditions of a site that need somebody, each with its remedy: the console shows them. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from shared.admin.outcomes import counted
from shared.admin.site_signs import SiteSigns, drifts
from shared.clock import span
from shared.store.operations.checks import ERROR, OF_SOURCE
from shared.store.operations.queues import EVENTS, INTAKE, NOTIFY, PUBLISH
from shared.store.operations.recent_refusals import MINUTES

BAD, WARN = "bad", "warn"
LATE_S = 60
"""Seconds after which a waiting file is a concern: a publish takes milliseconds."""
BEHIND_S = 30
"""Seconds after which a target that lacks a publish is a concern: it follows in less than two."""
STILL_S = 15 * 60
"""Seconds after which a notification that is due and was not tried is a concern."""
TRIES = 3
"""Attempts in a row that failed at an engine before that is a concern."""
REFUSED = 10
"""Refused deliveries of one kind within MINUTES before they are a concern."""
NAMED = 5
"""Quarantined shards that are named for each site."""

PAUSED = {
    EVENTS: "events are paused", PUBLISH: "publishing is paused",
    NOTIFY: "notifications are paused", INTAKE: "the intake is closed",
}  # fmt: skip
_REFUSALS = {
    "unauthorized": ("bad signature", "rotate its secret, or fix the sender"),
    "stale": ("old or early signature", "set the clock of the sender"),
    "rate-limited": ("delivery above the rate", "slow the sender down, or raise `rate`"),
    "inbox-full": ("delivery to a full inbox", "start more workers"),
}
"""What a code of a refusal means in an alarm, and the remedy; others say their code."""
_NO_FAULT = {"closed", "conflict"}
"""Refusals that are no alarm: an administrator closed the intake; a first delivery stands."""


class Concern(NamedTuple):
    """A condition that needs an administrator, of one `kind` (a permanent name) at one `site`.

    `grade` is BAD or WARN; `said` describes it, `todo` is the remedy, `command` its command line;
    `page` is the endpoint of the console page that shows it (empty: none), `label` its link.
    """

    kind: str
    site: str
    grade: str
    said: str
    todo: str = ""
    command: tuple[str, ...] = ()
    page: str = ""
    label: str = ""


def concerns(signs: SiteSigns) -> list[Concern]:
    """Return the concerns of one site, the worst first."""
    if _calm(signs):
        return []
    found = [concern for condition in CONDITIONS for concern in condition(signs)]
    return sorted(found, key=lambda concern: concern.grade)  # bad before warn


def _calm(signs: SiteSigns) -> bool:
    """Return True if nothing is there that any condition looks at: so it is at most sites."""
    status = signs.status
    return not (
        status["waiting_events"] or status["dirty_files"] or any(map(status.get, _EXCEPTIONS))
        or status["urls"] != status["published_urls"]
        or signs.refused.counts or any(each.due_ms or each.breaker for each in signs.engines)
        or wrong_checks(signs) or (signs.compared and signs.compared.differing())
        or signs.accepted.silent is not None or signs.late or signs.alarms
    )  # fmt: skip


def worst(found: Iterable[Concern]) -> str:
    """Return the worst grade; empty without any."""
    return min((concern.grade for concern in found), default="")


def _stopped(signs: SiteSigns) -> Iterator[Concern]:
    if stopped := signs.status["stopped"]:
        said, todo = f"Nothing is published: {stopped['reason']}.", stopped["todo"]
        yield Concern("stopped", signs.site, BAD, said, f"What to do: {todo}.")


def _quarantined(signs: SiteSigns) -> Iterator[Concern]:
    for single in signs.status["quarantined"][:NAMED]:
        said = f"The file of {single['shard']} is not published: {single['reason']}."
        yield Concern("quarantined", signs.site, BAD, said, f"What to do: {single['todo']}.")


def _behind(signs: SiteSigns) -> Iterator[Concern]:
    for each in signs.status.get("targets", ()):
        where = f"The target {each['target']} ({each['url']})"
        if each["failing_s"]:
            said = f"{where} cannot be written for {span(each['failing_s'])}: {each['reason']}."
            todo = "The others are published. It is tried again, and makes up for all."
        elif each["behind_s"] > BEHIND_S:
            said = f"{where} lacks what was published {span(each['behind_s'])} ago."
            on = f" on the host {each['host']}" if each["host"] else ""
            todo = f"Check that a worker is alive{on}: run worker --host NAME."
        else:
            continue
        yield Concern("target", signs.site, BAD, said, todo)


def _failed(signs: SiteSigns) -> Iterator[Concern]:
    if dead := signs.status["dead_events"]:
        are = "is" if dead == 1 else "are"
        yield Concern(
            "failed", signs.site, BAD,
            f"{_many(dead, 'event')} failed five times and {are} set aside.",
            "Their changes are not published.", page="failed", label="See why, then retry",
        )  # fmt: skip


def _failing(signs: SiteSigns) -> Iterator[Concern]:
    for each in signs.status["failing"]:
        kind = "unsent" if each["loop"] == "notify" and each["part"] else "failing"
        what = f"{each['loop']} ({each['part']})" if each["part"] else each["loop"]
        said = f"{what.capitalize()} of the worker {each['worker']} is {each['state']} for"
        yield Concern(
            kind, signs.site, BAD, f"{said} {span(each['for_s'])}.", each["reason"],
            page="workers", label="Workers",
        )  # fmt: skip


def _late(signs: SiteSigns) -> Iterator[Concern]:
    waited = signs.status["dirty_for_s"]
    if waited > LATE_S and PUBLISH not in signs.status["paused"]:
        todo = (
            "Check that a worker is alive and can write, and that the disk has space. This "
            "command lists the differences:"
        )
        said = f"Files have waited {span(waited)} to be published."
        yield Concern(
            "late", signs.site, BAD, said, todo, _of(signs.site, "verify"), "queues", "Queues"
        )


def _waiting(signs: SiteSigns) -> Iterator[Concern]:
    waited = signs.status["oldest_s"] or 0.0
    if waited > LATE_S and EVENTS not in signs.status["paused"]:
        said = f"An event has waited {span(waited)} to be decided."
        todo = "Check that a worker is alive and can read: the inbox is not drained."
        yield Concern("waiting", signs.site, BAD, said, todo, page="queues", label="Queues")


def _drifted(signs: SiteSigns) -> Iterator[Concern]:
    if drifts(signs.status):
        listed, written = signs.status["urls"], signs.status["published_urls"]
        said = f"The state lists {listed:,} pages, its files {written:,}."
        todo = (
            "No pending change explains this. This command lists the differences; sitemapd "
            "rebuild repairs them:"
        )
        yield Concern("drift", signs.site, BAD, said, todo, _of(signs.site, "verify"))


def _held(signs: SiteSigns) -> Iterator[Concern]:
    if held := signs.status["held"]:
        said = f"The shrink guard holds {_many(len(held), 'file')} that would lose many pages."
        todo = (
            "Their new pages and edits wait, too. Confirm if this is intended; else send the "
            "pages again."
        )
        yield Concern(
            "held", signs.site, WARN, said, todo, page="overview", label="Look and confirm"
        )


def _paused(signs: SiteSigns) -> Iterator[Concern]:
    if said := "; ".join(PAUSED[queue] for queue in signs.status["paused"] if queue in PAUSED):
        yield Concern(
            "paused", signs.site, WARN, f"{said[:1].upper()}{said[1:]}.",
            "It lasts until it is resumed.", page="queues", label="Resume",
        )  # fmt: skip


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
            (*_of(signs.site, "readback"), "--unknown"), "index_status", "Index status",
        )  # fmt: skip


def _resync(signs: SiteSigns) -> Iterator[Concern]:
    if asked := signs.status["resync"]:
        said = f"{_many(len(asked), 'resync')} waits for a comparison with the source."
        more = () if signs.sourced else ("--against", "SOURCE")
        todo = "" if signs.sourced else "The site has no source configured: add one."
        yield Concern(
            "resync", signs.site, WARN, said, todo, (*_of(signs.site, "reconcile"), *more)
        )


def wrong_checks(signs: SiteSigns) -> list[str]:
    """Return the checks of the last report that found errors, without those of the source."""
    found = signs.report.findings if signs.report else ()
    return [each.check for each in found if each.severity == ERROR and each.check not in OF_SOURCE]


def _checked(signs: SiteSigns) -> Iterator[Concern]:
    report, wrong = signs.report, wrong_checks(signs)
    if report and wrong:
        said = f"Checked {_ago(signs, report.ended_ms)}: {_many(len(wrong), 'error')}."
        yield Concern(
            "checked", signs.site, BAD, said, f"{', '.join(wrong)}.", page="checks", label="Checks"
        )


def _compared(signs: SiteSigns) -> Iterator[Concern]:
    if signs.compared and (counts := signs.compared.differing()):
        found = ", ".join(f"{count:,} {what}" for what, count in counts)
        said = f"Compared with the source {_ago(signs, signs.compared.at_ms)}: {found}."
        yield Concern("differs", signs.site, BAD, said, page="checks", label="Checks")


def _looked_at(signs: SiteSigns) -> Iterator[Concern]:
    command = (*_of(signs.site, "check"), "--pages")
    for said in signs.alarms:
        yield Concern("pages", signs.site, BAD, said, "", command, "checks", "Checks")


_EXCEPTIONS = (
    "stopped", "quarantined", "targets", "dead_events", "failing", "held", "paused", "resync",
)  # fmt: skip
"""Members of a status that some condition looks at, and that are empty at most sites."""

CONDITIONS: tuple[Callable[[SiteSigns], Iterator[Concern]], ...] = (
    _stopped, _quarantined, _behind, _failed, _failing, _late, _waiting, _drifted, _checked,
    _compared, _looked_at, _held, _paused, _refused, _engines, _silent, _unknown, _resync,
)  # fmt: skip


def _ago(signs: SiteSigns, at_ms: int) -> str:
    return f"{span(max(0.0, signs.now_s - at_ms / 1000))} ago"


def _many(number: int, what: str) -> str:
    return f"{number:,} {counted(number, what).partition(' ')[2]}"


def _of(name: str, words: str) -> tuple[str, ...]:
    return ("sitemapd", words, "--site", name)
