"""Conditions of the work on a site: what stands, waits, fails, differs or is held."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from shared.admin.conditions.concern import BAD, WARN, Concern, command_line, many
from shared.admin.site_signs import SiteSigns, drifts
from shared.clock import span
from shared.store.operations.queues import EVENTS, INTAKE, NOTIFY, PUBLISH

LATE_S = 60
"""Seconds after which a waiting file is a concern: a publish takes milliseconds."""
BEHIND_S = 30
"""Seconds after which a target that lacks a publish is a concern: it follows in less than two."""
NAMED = 5
"""Quarantined shards that are named for each site."""

PAUSED = {
    EVENTS: "events are paused", PUBLISH: "publishing is paused",
    NOTIFY: "notifications are paused", INTAKE: "the intake is closed",
}  # fmt: skip


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
            f"{many(dead, 'event')} failed five times and {are} set aside.",
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
        command = command_line(signs.site, "verify")
        yield Concern("late", signs.site, BAD, said, todo, command, "queues", "Queues")


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
        yield Concern("drift", signs.site, BAD, said, todo, command_line(signs.site, "verify"))


def _held(signs: SiteSigns) -> Iterator[Concern]:
    if held := signs.status["held"]:
        said = f"The shrink guard holds {many(len(held), 'file')} that would lose many pages."
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


CONDITIONS: tuple[Callable[[SiteSigns], Iterator[Concern]], ...] = (
    _stopped, _quarantined, _behind, _failed, _failing, _late, _waiting, _drifted, _held, _paused,
)  # fmt: skip
