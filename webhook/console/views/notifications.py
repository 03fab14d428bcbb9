"""Page of notifications: sent, waiting and given up ones, and the crawl report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice, pairwise
from typing import Any
from urllib.parse import urlsplit

from werkzeug.datastructures import MultiDict

from shared.clock import now_ms, span
from shared.errors import Fault, InvalidError
from shared.store.notify.notification_queue import MOST_RECORDS, Breaker, NotificationQueue
from shared.store.operations import crawl_report
from shared.store.operations.queues import NOTIFY, Queues
from webhook.console.page_registry import ActionDone, PageRegistry, Shown, query_arg
from webhook.console.presentation import form_fields, template_filters

ROWS = 50
LETTERS = 9
"""Dead letters shown, of up to a thousand pages each; the store returns ten at a time."""
SOME = 3

_GRADES = {"done": "good", "pending": "good", "too many": "warn", "held back": "warn"}
"""Grades of outcomes (worker/notify/engine.py); the others are failures."""


def install(registry: PageRegistry) -> None:
    """Register the page Notifications, and the action `notify replay`."""
    services = registry.services

    def show() -> Shown:
        name = registry.site()
        notices, now = NotificationQueue(services.client, name), now_ms()
        configured = services.sites[name].notify.engines
        breakers = notices.breakers()
        at = min(_number(query_arg("page")), MOST_RECORDS // ROWS)
        records = notices.records((at + 1) * ROWS + 1)
        dead = list(islice(notices.dead(), LETTERS + 1))
        values = {
            "name": name, "now": now, "grades": _GRADES, "host": host,
            "crawl": crawl(registry, name),
            "engines": [
                _engine(notices, engine, config.daily, breakers, now)
                for engine, config in configured.items()
            ],
            "given_up": {each.engine for each in dead},
            "dead": dead[:LETTERS], "more_dead": len(dead) > LETTERS,
            "paused": Queues(services.client, name).paused().get(NOTIFY), "some": SOME,
            "records": records[at * ROWS : (at + 1) * ROWS],
            "newer": registry.address("Notifications", site=name, page=str(at - 1)) if at else "",
            "older": registry.address("Notifications", site=name, page=str(at + 1))
            if len(records) > (at + 1) * ROWS else "",
        }  # fmt: skip
        return Shown("notifications.html", values)

    def replay(form: MultiDict[str, str]) -> ActionDone:
        name, engine = form_fields.site_of(services, form), form.get("subject", "")
        if engine not in services.sites[name].notify.engines:
            raise InvalidError(Fault(engine[:80], "config", f"is not configured for {name}"))
        count = NotificationQueue(services.client, name).replay([engine], now_ms())
        said = f"{template_filters.plural(count, 'page')} queued again, and all pauses ended"
        return ActionDone(said, name, engine, back=registry.address("Notifications", site=name))

    registry.page("Notifications", "/notifications", show, per_site=True, live=True)
    registry.action("notify replay", "/notifications/replay", replay)


def _engine(
    notices: NotificationQueue,
    name: str,
    daily: int,
    breakers: Mapping[tuple[str, str], Breaker],
    now: int,
) -> dict[str, Any]:
    """Return the values of one engine."""
    mine = [(at, breaker) for (engine, at), breaker in breakers.items() if engine == name]
    figures = notices.figures(name, now)
    grade, state = "good", "active"
    if any(breaker.paused for _, breaker in mine):
        grade, state = "bad", "paused: needs action"
    elif any(breaker.open(now) for _, breaker in mine):
        grade, state = "warn", "paused for a while"
    elif (figures["spent_today"] or 0) >= daily:
        grade, state = "warn", "today's budget is spent"
    return {
        "name": name, "daily": daily, "grade": grade, "state": state, **figures,
        "alone": [
            {"host": host(at), "breaker": breaker, "open": breaker.open(now)}
            for at, breaker in mine
        ],
    }  # fmt: skip


def host(endpoint: str) -> str:
    """Return the host of an endpoint; its path and query may hold keys."""
    try:
        return urlsplit(endpoint).netloc.rpartition("@")[2] or "unknown"
    except ValueError:
        return "unknown"


def crawl(registry: PageRegistry, name: str) -> dict[str, Any] | None:
    """Return the last result of `sitemapd crawl` as rows of an engine and a kind; None if none is
    kept.
    """
    report = crawl_report.load(registry.services.client, name)
    if report is None:
        return None
    bounds = _classes(report["bounds_s"])
    rows = [
        {
            "engine": engine["engine"], "verified": engine["verified"], **kind,
            "said": _said(bounds, kind["histogram"]),
        }
        for engine in report["engines"]
        for kind in engine["kinds"]
    ]  # fmt: skip
    return {**report, "rows": rows, "classes": bounds}


def _classes(bounds_s: Iterable[float]) -> list[str]:
    """Return the names of the classes of a histogram."""
    bounds = [span(bound) for bound in bounds_s]
    if not bounds:
        return []
    between = [f"{low} to {high}" for low, high in pairwise(bounds)]
    return [f"under {bounds[0]}", *between, f"over {bounds[-1]}"]


def _said(classes: Iterable[str], counts: Iterable[int]) -> str:
    pairs = zip(classes, counts, strict=False)
    return ", ".join(f"{name}: {count:,}" for name, count in pairs if count) or "none"


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 9 else 0
