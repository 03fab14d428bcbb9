"""Overview: a row for each site, the worst first, above it what needs attention; one site with its
charts; and the action that confirms a shrink hold.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

from werkzeug.datastructures import MultiDict

from shared.admin import attention
from shared.admin.conditions.concern import Concern
from shared.admin.site_signs import SignReader, SiteSigns
from shared.errors import Fault, InvalidError
from shared.store.counting.counters import Counters
from shared.store.operations.worker_registry import WorkerRegistry
from shared.store.publishing.shrink_holds import ShrinkHolds
from webhook.console.page_registry import ActionDone, PageRegistry, Shown, query_arg
from webhook.console.presentation import check_results, fleet_rows, form_fields, time_charts
from webhook.console.views import workers

ROWS = 50
"""Sites in the table of one page."""
SINGLY, NAMED = 3, 8
"""Concerns of one kind that are listed one by one; of more, one is, and sites with the others are
named.
"""
LINKED = ("Overview", "Queues", "Events", "Failed")
"""Pages that the rows of the table link."""
MANY, SHARE, MOST_AGE_S = 1_000, 0.05, 15.0
"""Number of sites that every request looks at anew; the maximum share of a core that looks at more
take, as pages refresh themselves, and their maximum age in seconds.
"""
GRADES = ("bad", "warn", "busy", "good")
STATES = {"bad": "Needs you", "warn": "Look here", "busy": "Working", "good": "Up to date"}


class Fleet:
    """All sites with what needs attention at each, for all who look at them."""

    def __init__(self, reader: SignReader) -> None:
        self._reader, self._lock = reader, threading.Lock()
        self._signs, self._judged = list[SiteSigns](), dict[str, list[Concern]]()
        self._stale_at = float("-inf")

    def look(self) -> tuple[Sequence[SiteSigns], Mapping[str, Sequence[Concern]]]:
        """Return the signs and the concerns of all sites: of now; of more than MANY a moment ago.
        Raises StoreError.
        """
        with self._lock:
            began = time.monotonic()
            if began >= self._stale_at:
                self._signs = self._reader.read()
                self._judged = {each.site: attention.concerns(each) for each in self._signs}
                now = time.monotonic()
                kept = min((now - began) / SHARE, MOST_AGE_S) if len(self._signs) > MANY else 0.0
                self._stale_at = now + kept
            return self._signs, self._judged


def install(registry: PageRegistry) -> None:
    """Register the page Overview, and the action `confirm`."""
    services = registry.services
    reader = SignReader(services.client, services.sites)
    fleet = Fleet(reader)

    def show() -> Shown:
        found = WorkerRegistry(services.client).list()
        values: dict[str, Any] = {
            "workers": [(worker.name, *workers.state(worker)) for worker in found],
            "alert": workers.alert([each for each in found if each.alive])
            if services.sites else "",
        }  # fmt: skip
        if query_arg("site") or len(services.sites) == 1:
            (signs,) = reader.read([registry.site()])
            return Shown("overview_site.html", values | _site(registry, signs))
        return Shown("overview.html", values | _fleet(registry, *fleet.look()))

    def confirm(form: MultiDict[str, str]) -> ActionDone:
        name, asked = form_fields.site_of(services, form), form.get("subject", "")
        return ActionDone(_confirm(ShrinkHolds(services.client, name), form), name, asked)

    registry.page("Overview", "/", show, per_site=True, all_sites=True, live=True)
    registry.action("confirm", "/confirm", confirm)


def _fleet(
    registry: PageRegistry, signs: Sequence[SiteSigns], judged: Mapping[str, Sequence[Concern]]
) -> dict[str, Any]:
    """Return the values of the table of all sites, or of those that are searched for."""
    asked, only = query_arg("q").lower(), query_arg("only")
    wanted = [
        each for each in signs
        if (asked in each.site.lower() or asked in each.status["base_url"].lower())
        and (judged[each.site] or only != "attention")
    ]  # fmt: skip
    ordered = sorted(wanted, key=lambda each: _rank(each, judged[each.site]))
    last = max(len(ordered) - 1, 0) // ROWS
    page = query_arg("page")
    at = min(int(page), last) if page.isascii() and page.isdigit() else 0
    shown = ordered[at * ROWS : (at + 1) * ROWS]
    concerns = sorted(
        (concern for found in judged.values() for concern in found), key=lambda each: each.grade
    )
    kept = {name: value for name, value in (("q", query_arg("q")), ("only", only)) if value}
    pages = {n: registry.address("Overview", **kept, page=str(n)) for n in (at - 1, at + 1)}
    return {
        "rows": fleet_rows.rows(
            registry.services.client, shown,
            {each.site: _state(each, judged[each.site]) for each in shown},
            {title: registry.address(title) for title in LINKED},
        ),
        "concerns": _together(concerns),
        "worried": sum(map(bool, judged.values())), "sites": len(signs), "found": len(ordered),
        "asked": query_arg("q"), "only": only, "first": at * ROWS,
        "newer": pages[at - 1] if at else "", "older": pages[at + 1] if at < last else "",
    }  # fmt: skip


def _together(concerns: Sequence[Concern]) -> list[tuple[Concern, Sequence[Concern], int]]:
    """Return the concerns as they are listed: each with others of its kind, and how many more."""
    kinds: dict[str, list[Concern]] = {}
    for concern in concerns:
        kinds.setdefault(concern.kind, []).append(concern)
    listed = list[tuple[Concern, Sequence[Concern], int]]()
    for of in kinds.values():
        alone = len(of) <= SINGLY
        listed += [(each, (), 0) for each in (of if alone else ())]
        if not alone:
            first, *others = of
            listed.append((first, others[:NAMED], max(0, len(others) - NAMED)))
    return listed


def _site(registry: PageRegistry, signs: SiteSigns) -> dict[str, Any]:
    """Return the values of one site."""
    name, status, report = signs.site, signs.status, signs.report
    found = attention.concerns(signs)
    grade, state = _state(signs, found)
    asked = query_arg("range")
    chosen = asked if asked in time_charts.RANGES else next(iter(time_charts.RANGES))
    held = [
        hold | {"command": ("sitemapd", "confirm", str(hold["shard"]), "--site", name)}
        for hold in status["held"]
    ]
    card = {
        **status, "concerns": found, "grade": grade, "state": state, "held": held,
        "drift": status["urls"] - status["published_urls"], "sourced": signs.sourced,
        "compared": signs.reconciled_ms / 1000 or None, "report": report,
        "checked": check_results.summary(check_results.of_check(report)) if report else "",
        "refused": sum(signs.refused.counts.values()),
        **time_charts.drawn(Counters(registry.services.client, name), chosen, time.time()),
    }  # fmt: skip
    here = {"site": name} if query_arg("site") else {}
    ranges = {each: registry.address("Overview", **here, range=each) for each in time_charts.RANGES}
    return {
        "card": card,
        "ranges": ranges,
        "range": chosen,
        "several": len(registry.services.sites) > 1,
    }


def _rank(signs: SiteSigns, found: Sequence[Concern]) -> tuple[int, int]:
    """Return the place of a site among others: the worst grade first, then the most concerns."""
    return GRADES.index(_grade(signs, found)), -len(found)


def _grade(signs: SiteSigns, found: Sequence[Concern]) -> str:
    busy = signs.status["waiting_events"] or signs.status["dirty_files"]
    return attention.worst(found) or ("busy" if busy else "good")


def _state(signs: SiteSigns, found: Sequence[Concern]) -> tuple[str, str]:
    grade = _grade(signs, found)
    return grade, STATES[grade]


def _confirm(holds: ShrinkHolds, form: Mapping[str, str]) -> str:
    """Let the shard that the form names shrink to the number of pages that it showed; return what
    was done. Pages that came since do no harm; raises InvalidError if it would shrink further.
    """
    asked, given = form.get("subject", ""), form.get("urls", "")
    found = {str(shard): (shard, hold) for shard, hold in holds.held().items()}
    shown = int(given) if given.isascii() and given.isdigit() and len(given) < 12 else -1
    if asked not in found or shown < 0:
        raise InvalidError(Fault(asked, "held", "is not held any more: reload the page"))
    shard, hold = found[asked]
    if hold.urls < shown:
        detail = f"would shrink to {hold.urls:,} pages by now, not to {shown:,}: reload the page"
        raise InvalidError(Fault(asked, "held", detail))
    holds.confirm({shard: shown})
    return f"{shard} may shrink from {hold.reference:,} to {shown:,} pages"
