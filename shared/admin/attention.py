"""Conditions of a site that need somebody, each with its remedy: the console shows them. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from shared.admin.conditions import checks, outside, work
from shared.admin.conditions.concern import Concern
from shared.admin.site_signs import SiteSigns

CONDITIONS = (*work.CONDITIONS, *checks.CONDITIONS, *outside.CONDITIONS)
"""Of one grade, the first is shown first."""
_EXCEPTIONS = (
    "stopped", "quarantined", "targets", "dead_events", "failing", "held", "paused", "resync",
)  # fmt: skip
"""Members of a status that some condition looks at, and that are empty at most sites."""


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
        or checks.wrong_checks(signs) or (signs.compared and signs.compared.differing())
        or signs.accepted.silent is not None or signs.late or signs.alarms
    )  # fmt: skip


def worst(found: Iterable[Concern]) -> str:
    """Return the worst grade; empty without any."""
    return min((concern.grade for concern in found), default="")
