"""Concerns become findings of alerts from the configured limits on."""

from __future__ import annotations

import shlex
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.main import get_command

from deploy.cli.program import app
from shared.admin.alert_findings import findings, volume_findings
from shared.admin.attention import CONDITIONS
from shared.admin.site_signs import SiteSigns
from shared.alerts.conditions import COMMANDS, TITLES, VolumeUse
from shared.config.alerts import Alerts
from shared.store.notify.notification_queue import Breaker, EngineState
from shared.store.operations.checks import ComparisonSummary
from tests.unit.shared.admin.test_attention import LOOP, SINGLE, report, signs

LIMITS = Alerts().limits("demo")
HELD = {"shard": "a/1", "since": "", "from": 9, "to": 1}
DOWN = EngineState("bing", None, Breaker(0, 0, "403", paused=True))

HOLDING: list[tuple[str, SiteSigns, str]] = [
    ("failed", signs({"dead_events": 1}), "1 event failed"),
    ("late", signs({"dirty_files": 1, "dirty_for_s": 300.0}), "waited 5 min"),
    ("late", signs({"waiting_events": 1, "oldest_s": 7_200.0}), "An event has waited 2 h"),
    ("late", signs({"stopped": {"reason": "disk full", "todo": "x"}}), "disk full"),
    ("late", signs({"quarantined": [SINGLE]}), "a/1"),
    ("held", signs({"held": [HELD]}), "1 file"),
    ("drift", signs(report=report("error")), "1 error"),
    ("drift", signs({"urls": 4}), "lists 4 pages"),
    ("source", signs(compared=ComparisonSummary(0, 1_200, 0, 0, {})), "1,200 missing"),
    ("pages", signs(alarms=["3 % of the pages are broken."]), "3 % of the pages"),
    ("engines", signs(engines=[DOWN]), "bing refused"),
    ("engines", signs({"failing": [LOOP]}), "Notify (indexnow)"),
]
ABSENT = [
    signs(),
    signs({"dirty_files": 1, "dirty_for_s": 240.0}),
    signs({"dirty_files": 1, "dirty_for_s": 900.0, "paused": ["publish"]}),
    signs({"waiting_events": 1, "oldest_s": 900.0, "paused": ["events"]}),
    signs({"failing": [{**LOOP, "loop": "sweep", "part": ""}]}),
    signs(report=report("warning")),
    signs(compared=ComparisonSummary(0, 9, 0, 0, {}, repaired=True)),
]


@pytest.mark.parametrize(("name", "site", "said"), HOLDING)
def test_a_condition_holds_alone(name: str, site: SiteSigns, said: str) -> None:
    ((found, finding),) = findings(site, LIMITS)

    assert found == name
    assert said in finding.said


@pytest.mark.parametrize("site", ABSENT)
def test_no_alert_is_made_of_what_is_usual_or_paused(site: SiteSigns) -> None:
    assert not list(findings(site, LIMITS))


def test_a_loop_of_an_engine_is_told_apart_from_others() -> None:
    site = signs({"failing": [{**LOOP, "loop": "sweep", "part": ""}, LOOP]})
    ((_, finding),) = findings(site, LIMITS)

    assert finding.said.startswith("Notify (indexnow)")


def test_of_many_concerns_the_first_are_told() -> None:
    down = [DOWN._replace(engine=f"engine-{n}") for n in range(5)]
    ((_, finding),) = findings(signs(engines=down), LIMITS)

    assert "engine-2" in finding.said
    assert finding.said.endswith("And 2 more.")


@pytest.mark.parametrize("command", COMMANDS.values())
def test_what_is_to_be_done_is_a_command(command: str) -> None:
    words = shlex.split(command.format(site="demo"))[1:]
    found: Any = get_command(app)
    context = None
    while hasattr(found, "get_command"):
        context = found.make_context("sitemapd", words[:1], parent=context, resilient_parsing=True)
        _, found, words = found.resolve_command(context, words)
    found.make_context(found.name, list(words), parent=context)


@pytest.mark.parametrize(
    ("share", "active", "holds"),
    [(0.9, False, True), (0.899, False, False), (0.885, True, True), (0.875, True, False)],
)
def test_a_disk_that_wavers_about_its_limit_is_one_condition(
    share: float, active: bool, holds: bool
) -> None:
    before = {"disk"} if active else set[str]()
    found = list(volume_findings("demo", [VolumeUse("/srv", share)], LIMITS, before))

    assert bool(found) is holds


def test_a_volume_of_no_site_is_named_with_a_command_for_all() -> None:
    ((_, finding),) = volume_findings("", [VolumeUse("memory of Redis", 0.957)], LIMITS)

    assert finding.said == "95 % of memory of Redis are used."
    assert finding.todo == "sitemapd doctor"


def test_every_condition_has_a_title_a_command_and_settings() -> None:
    assert set(TITLES) == set(COMMANDS) == set(LIMITS)
    assert len(CONDITIONS) > len(TITLES)


@given(st.integers(0, 5), st.integers(0, 5))
def test_a_limit_counts_from_itself_on(number: int, limit: int) -> None:
    found = [name for name, _ in findings(signs({"dead_events": number}), {"failed": limit})]

    assert found == (["failed"] if number and number >= limit else [])
