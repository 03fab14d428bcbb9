"""What needs somebody, by the signs of a site."""

from __future__ import annotations

from typing import Any

import pytest

from shared.admin.attention import CONDITIONS, concerns, worst
from shared.admin.conditions.outside import REFUSED, STILL_S, TRIES
from shared.admin.conditions.work import LATE_S
from shared.admin.site_signs import LatePages, SiteSigns
from shared.domain.sender_habit import WEEK
from shared.store.counting.counters import AcceptedHours
from shared.store.notify.notification_queue import Breaker, EngineState
from shared.store.operations.checks import (
    ERROR,
    WARNING,
    CheckFinding,
    CheckReport,
    ComparisonSummary,
)
from shared.store.operations.recent_refusals import RecentRefusals

NOW_S = 1_795_000_000.0
CALM: dict[str, Any] = {
    "site": "demo", "urls": 3, "published_urls": 3, "waiting_events": 0, "dirty_files": 0,
    "dirty_for_s": 0.0, "dead_events": 0, "paused": [], "failing": [], "held": [], "stopped": None,
    "quarantined": [], "resync": [], "oldest_s": None,
}  # fmt: skip
SINGLE = {"shard": "a/1", "reason": "r", "todo": "t"}
LOOP = {
    "loop": "notify", "part": "indexnow", "worker": "w1", "state": "failing", "for_s": 90.0,
    "times": 3, "reason": "ValueError: no",
}  # fmt: skip
TARGET = {
    "target": "web2", "url": "/srv/maps", "host": "web2", "publishes": 5, "behind_s": 61.0,
    "failing_s": 61.0, "reason": "403",
}  # fmt: skip


def signs(status: dict[str, Any] | None = None, **more: Any) -> SiteSigns:
    return SiteSigns("demo", NOW_S, CALM | (status or {}), **more)


def report(*severities: str) -> CheckReport:
    findings = tuple(
        CheckFinding(f"check-{n}", severity, 1, (), "", "") for n, severity in enumerate(severities)
    )
    return CheckReport(0, int(NOW_S * 1000) - 60_000, "x", 3, True, findings)


def engine(waited_s: float | None, breaker: Breaker | None = None) -> SiteSigns:
    due = None if waited_s is None else int((NOW_S - waited_s) * 1000)
    return signs(engines=[EngineState("indexnow", due, breaker)])


@pytest.mark.parametrize(
    ("site", "kind", "grade", "said"),
    [
        (signs({"stopped": {"reason": "disk full", "todo": "x"}}), "stopped", "bad", "disk full"),
        (signs({"quarantined": [SINGLE]}), "quarantined", "bad", "a/1"),
        (signs(alarms=["3 % are broken."]), "pages", "bad", "3 % are broken."),
        (signs({"targets": [TARGET]}), "target", "bad", "cannot be written for 1 min: 403"),
        (signs({"targets": [TARGET | {"failing_s": 0.0}]}), "target", "bad", "lacks what was"),
        (signs({"dead_events": 1}), "failed", "bad", "1 event failed five times and is set aside"),
        (signs({"dead_events": 1200}), "failed", "bad", "1,200 events failed five times and are"),
        (signs({"failing": [LOOP]}), "unsent", "bad", "Notify (indexnow) of the worker w1"),
        (signs({"dirty_files": 1, "dirty_for_s": LATE_S + 1.0}), "late", "bad", "waited 1 min"),
        (signs({"waiting_events": 1, "oldest_s": 90.0}), "waiting", "bad", "An event has waited"),
        (signs({"urls": 4}), "drift", "bad", "The state lists 4 pages, its files 3"),
        (signs({"held": [{"shard": "a/1"}]}), "held", "warn", "1 file"),
        (signs({"paused": ["events"]}), "paused", "warn", "Events are paused."),
        (signs({"resync": [{"scope": "everything"}]}), "resync", "warn", "1 resync"),
        (signs(report=report(WARNING, ERROR)), "checked", "bad", "Checked 1 min ago: 1 error"),
        (signs(compared=ComparisonSummary(0, 3, 0, 2, {})), "differs", "bad", "3 missing, 2 extra"),
        (engine(STILL_S + 1), "engine", "warn", "indexnow stands still"),
        (engine(1, Breaker(TRIES, 0, "500")), "engine", "warn", "refused 3 times in a row: 500"),
        (engine(None, Breaker(1, 0, "a wrong key", paused=True)), "engine", "warn", "a wrong key"),
        (
            signs(refused=RecentRefusals({"unauthorized": 142}, {"unauthorized": "203.0.113.9"})),
            "refused", "warn", "142 bad signatures in 10 minutes, most of them from 203.0.113.9.",
        ),
        (
            signs(accepted=AcceptedHours([1] * 2 * WEEK + [0] * 6, int(NOW_S - 6 * 3600) * 1000)),
            "silent", "warn", "No event for 6 h",
        ),
        (
            signs(late=[LatePages("google", 12, 72)]),
            "unknown", "warn", "Google does not know 12 pages 3 days after their publish.",
        ),
    ],
)  # fmt: skip
def test_each_condition_is_told_with_what_it_is(
    site: SiteSigns, kind: str, grade: str, said: str
) -> None:
    (found,) = concerns(site)

    assert (found.kind, found.site, found.grade) == (kind, "demo", grade)
    assert said in found.said
    assert found.todo or found.page or found.command


@pytest.mark.parametrize(
    "site",
    [
        signs(),
        signs({"dirty_files": 1, "dirty_for_s": LATE_S - 1.0}),
        signs({"urls": 4, "waiting_events": 1}),
        signs(refused=RecentRefusals({"unauthorized": REFUSED - 1, "closed": 900})),
        signs(compared=ComparisonSummary(0, 3, 0, 2, {}, repaired=True)),
        signs(report=report(WARNING)),
        signs(accepted=AcceptedHours([0] * 900, 0)),
        signs(accepted=AcceptedHours([1] + [0] * 800, 0)),
        engine(None),
        engine(STILL_S - 1),
        engine(-3600),
        engine(STILL_S + 1, Breaker(1, int(NOW_S * 1000) + 1, "asked to wait")),
    ],
)
def test_what_is_usual_is_no_concern(site: SiteSigns) -> None:
    assert concerns(site) == []


@pytest.mark.parametrize(
    ("queue", "site"),
    [
        ("publish", signs({"dirty_files": 1, "dirty_for_s": 900.0, "paused": ["publish"]})),
        ("notify", engine(STILL_S + 1)._replace(status=CALM | {"paused": ["notify"]})),
        ("intake", signs({"paused": ["intake"]}, accepted=AcceptedHours([1] * 400 + [0] * 9, 1))),
    ],
)
def test_what_a_pause_explains_is_told_as_the_pause(queue: str, site: SiteSigns) -> None:
    assert queue in site.status["paused"]
    assert [each.kind for each in concerns(site)] == ["paused"]


def test_the_worst_stands_first() -> None:
    found = concerns(signs({"paused": ["events"], "dead_events": 1, "held": [{"shard": "a/1"}]}))

    assert [each.grade for each in found] == ["bad", "warn", "warn"]
    assert worst(found) == "bad"
    assert worst([]) == ""


def test_every_condition_is_tried() -> None:
    assert len(CONDITIONS) == 18
