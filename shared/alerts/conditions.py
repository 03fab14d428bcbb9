"""Conditions of which alerts tell: their names, the commands that show or repair them, findings."""

from __future__ import annotations

from typing import NamedTuple

FAILED, LATE, HELD, DRIFT, SOURCE, PAGES, ENGINES, SILENT, UNKNOWN, DISK = (
    "failed", "late", "held", "drift", "source", "pages", "engines", "silent", "unknown", "disk"
)  # fmt: skip

TITLES = {
    FAILED: "failed events", LATE: "late publishing", HELD: "held files",
    DRIFT: "files or state that differ", SOURCE: "a source that differs",
    PAGES: "broken or missing pages", ENGINES: "engines that are down", SILENT: "silent senders",
    UNKNOWN: "published pages that engines do not know", DISK: "a full disk",
}  # fmt: skip
"""All conditions, as messages call them."""

COMMANDS = {
    FAILED: "sitemapd dead list --site {site}", LATE: "sitemapd status --site {site}",
    HELD: "sitemapd confirm --site {site}", DRIFT: "sitemapd check --site {site}",
    SOURCE: "sitemapd reconcile --site {site}", PAGES: "sitemapd check --pages --site {site}",
    ENGINES: "sitemapd notify list {site}", SILENT: "sitemapd event list --site {site}",
    UNKNOWN: "sitemapd readback --unknown --site {site}", DISK: "sitemapd doctor --site {site}",
}  # fmt: skip

MARGINS = {DISK: 2.0}
"""Parts of a limit by which a measure must fall below it until its condition is absent again: one
that wavers about its limit begins no alert after another.
"""


class Finding(NamedTuple):
    """A condition that holds: `said` describes it, `todo` is the command that shows or repairs
    it.
    """

    said: str
    todo: str


class VolumeUse(NamedTuple):
    """The used share of a volume (0 to 1), by `what` is kept there."""

    what: str
    share: float


def limit_of(condition: str, limit: float, *, active: bool) -> float:
    """Return the limit that counts now: a lower one for a condition that held before."""
    return limit - MARGINS.get(condition, 0.0) if active else limit


def finding(condition: str, site: str, said: str) -> Finding:
    """Return the finding of a condition at `site` (empty: the whole installation)."""
    command = COMMANDS[condition].format(site=site)
    return Finding(said, command if site else command.partition(" --site")[0])
