"""Findings of alerts: the concerns of shared/admin/attention.py, measured by configured limits.

What a condition is, is decided there; here its concerns are gathered by the conditions that an
administrator sets limits for. Pure.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterator, Mapping, Sequence

from shared.admin.attention import concerns
from shared.admin.conditions.checks import wrong_checks
from shared.admin.conditions.concern import Concern
from shared.admin.site_signs import SiteSigns
from shared.alerts import conditions
from shared.alerts.conditions import Finding, VolumeUse

NAMED = 3
"""Concerns, volumes or engines of which one finding tells."""

_KINDS = {
    conditions.FAILED: ("failed",),
    conditions.LATE: ("stopped", "quarantined", "target", "late", "waiting"),
    conditions.HELD: ("held",),
    conditions.DRIFT: ("drift", "checked"),
    conditions.SOURCE: ("differs",),
    conditions.PAGES: ("pages",),
    conditions.ENGINES: ("engine", "unsent"),
    conditions.SILENT: ("silent",),
    conditions.UNKNOWN: ("unknown",),
}
"""Kinds of concerns, by the condition they belong to."""


def findings(
    signs: SiteSigns, limits: Mapping[str, float], active: Container[str] = ()
) -> Iterator[tuple[str, Finding]]:
    """Yield each condition of `limits` that holds at a site, with its finding; `active` are those
    that held before.
    """
    known = concerns(signs)
    for name, kinds in _KINDS.items():
        found = [each for each in known if each.kind in kinds]
        if not found or name not in limits:
            continue
        least = conditions.limit_of(name, limits[name], active=name in active)
        if _MEASURES[name](signs, found) >= least:
            yield name, conditions.finding(name, signs.site, _some([each.said for each in found]))


def volume_findings(
    site: str, volumes: Sequence[VolumeUse], limits: Mapping[str, float],
    active: Container[str] = (),
) -> Iterator[tuple[str, Finding]]:  # fmt: skip
    """Yield the finding about those `volumes` that are full, if there are any."""
    name = conditions.DISK
    if name not in limits:
        return
    least = conditions.limit_of(name, limits[name], active=name in active)
    full = [each for each in volumes if each.share * 100 >= least]
    if full:
        said = [f"{int(each.share * 100)} % of {each.what} are used." for each in full]
        yield name, conditions.finding(name, site, _some(said))


def _minutes(signs: SiteSigns, found: Sequence[Concern]) -> float:
    """Return the minutes for which changes wait; infinity where publishing has stopped."""
    kinds = {each.kind for each in found}
    if kinds & {"stopped", "quarantined", "target"}:
        return math.inf
    files = signs.status["dirty_for_s"] if "late" in kinds else 0.0
    events = signs.status["oldest_s"] if "waiting" in kinds else 0.0
    return float(max(files, events or 0.0)) / 60


_MEASURES: Mapping[str, Callable[[SiteSigns, Sequence[Concern]], float]] = {
    conditions.FAILED: lambda signs, _: signs.status["dead_events"],
    conditions.LATE: _minutes,
    conditions.HELD: lambda signs, _: len(signs.status["held"]),
    conditions.DRIFT: lambda signs, found: (
        len(wrong_checks(signs)) + sum(each.kind == "drift" for each in found)
    ),
    conditions.SOURCE: lambda signs, _: sum(
        count for _, count in (signs.compared.differing() if signs.compared else ())
    ),
    conditions.PAGES: lambda _, found: len(found),
    conditions.ENGINES: lambda _, found: len(found),
    conditions.SILENT: lambda signs, _: (signs.now_s - signs.accepted.last_ms / 1000) / 3600,
    conditions.UNKNOWN: lambda signs, _: max(each.pages for each in signs.late),
}


def _some(said: Sequence[str]) -> str:
    more = f" And {len(said) - NAMED} more." if len(said) > NAMED else ""
    return f"{' '.join(said[:NAMED])}{more}"
