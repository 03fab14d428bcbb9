"""An alert begins and ends once, however its condition wavers, and messages are bounded."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from shared.alerts.conditions import Finding
from shared.alerts.lifecycle import (
    HOUR_MS,
    Alert,
    AlertKey,
    AlertRule,
    active,
    advance,
    advance_all,
    due,
    told,
)

FOUND = Finding("3 events failed", "sitemapd dead list")
MINUTE = 60_000
RULE = AlertRule(2 * MINUTE, 5 * MINUTE)
START = 1_700_000_000_000
CONDITIONS = ("failed", "late", "disk")
SITES = ("", "a", "b")
KEYS = [AlertKey(condition, site) for condition in CONDITIONS for site in SITES]


def lived(*looks: tuple[int, bool]) -> Alert | None:
    """The alert after looks at these minutes; True: the condition holds."""
    alert = None
    for minute, holds in looks:
        alert = advance(alert, FOUND if holds else None, START + minute * MINUTE, RULE)
    return alert


def test_an_alert_begins_once_its_condition_has_held_for_a_while() -> None:
    waits, begun = lived((0, True), (1, True)), lived((0, True), (1, True), (2, True))

    assert waits is not None
    assert not waits.active
    assert begun is not None
    assert begun.active
    assert begun.began_ms == START + 2 * MINUTE


def test_a_condition_that_holds_for_a_moment_is_no_alert() -> None:
    assert lived((0, True), (1, False)) is None


def test_an_alert_outlives_a_short_absence_of_its_condition() -> None:
    alert = lived((0, True), (2, True), (3, False), (7, False), (8, True), (12, False))

    assert alert is not None
    assert alert.active
    assert alert.began_ms == START + 2 * MINUTE


def test_an_alert_that_nobody_was_told_of_ends_silently() -> None:
    assert lived((0, True), (2, True), (3, False), (8, False)) is None


def test_a_clock_that_was_set_back_makes_no_alert_wait_longer() -> None:
    alert = lived((600, True), (0, True), (2, True))

    assert alert is not None
    assert alert.active


def test_a_condition_that_is_switched_off_ends_at_once() -> None:
    begun = Alert("", "", START, began_ms=START, told=True)

    after = advance_all({KEYS[0]: begun}, {}, START + 1, {})

    assert after[KEYS[0]].ended_ms == START + 1


def test_alerts_of_one_moment_are_told_together() -> None:
    alerts = advance_all({}, dict.fromkeys(KEYS, FOUND), START, dict.fromkeys(CONDITIONS,
        AlertRule(0, 0)))  # fmt: skip

    assert due(alerts, [], START + 9, group_ms=10, hourly=1) is None
    announced = due(alerts, [], START + 10, group_ms=10, hourly=1)

    assert announced is not None
    assert set(announced.began) == set(KEYS)
    assert due(told(alerts, announced), [START + 10], START + 99, group_ms=10, hourly=9) is None


def test_a_message_beyond_the_hourly_number_waits_and_tells_of_all() -> None:
    begun = Alert("", "", START, began_ms=START)
    alerts = {KEYS[0]: begun, KEYS[1]: begun}

    assert due(alerts, [START, START + 1], START + 2, group_ms=0, hourly=2) is None
    later = due(alerts, [START, START + 1], START + HOUR_MS, group_ms=0, hourly=2)

    assert later is not None
    assert set(later.began) == set(alerts)


class LifeOfAlerts(RuleBasedStateMachine):
    """Any looks at any times; what a reader of the messages knows is compared with the alerts."""

    hourly, group_ms = 3, 30_000

    def __init__(self) -> None:
        super().__init__()
        self.now, self.sent = START, list[int]()
        self.alerts: dict[AlertKey, Alert] = {}
        self.held: dict[AlertKey, int] = {}  # since when a condition holds
        self.reader: set[AlertKey] = set()

    @rule(seconds=st.integers(1, 400), holding=st.sets(st.sampled_from(KEYS)))
    def look(self, seconds: int, holding: set[AlertKey]) -> None:
        self.now += seconds * 1000
        self.held = {key: self.held.get(key, self.now) for key in holding}
        rules = dict.fromkeys(CONDITIONS, RULE)
        before = active(self.alerts)
        self.alerts = advance_all(self.alerts, dict.fromkeys(holding, FOUND), self.now, rules)
        for key in active(self.alerts).keys() - before.keys() - self.reader:
            assert self.now - self.held[key] >= RULE.after_ms

    @precondition(lambda self: self.alerts)
    @rule()
    def tell(self) -> None:
        announced = due(
            self.alerts, self.sent, self.now, group_ms=self.group_ms, hourly=self.hourly
        )
        if announced is None:
            return
        assert not self.reader & announced.began.keys(), "a beginning is told once"
        assert announced.ended.keys() <= self.reader, "an end is told of what was told"
        self.reader = (self.reader | announced.began.keys()) - announced.ended.keys()
        self.alerts, self.sent = told(self.alerts, announced), [*self.sent, self.now]

    @invariant()
    def messages_are_bounded(self) -> None:
        lately = [at for at in self.sent if self.now - HOUR_MS < at]
        assert len(lately) <= self.hourly

    @invariant()
    def nothing_is_forgotten(self) -> None:
        """What the reader takes for active is active, or its end is still to be told."""
        assert all(self.alerts[key].told for key in self.reader)
        assert {key for key, alert in self.alerts.items() if alert.told} == self.reader


TestLifeOfAlerts = LifeOfAlerts.TestCase
TestLifeOfAlerts.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3_000_000), st.booleans()), max_size=30))
def test_times_of_an_alert_are_in_order_whatever_the_clock_does(
    looks: list[tuple[int, bool]],
) -> None:
    alert = None
    for at, holds in looks:
        alert = advance(alert, FOUND if holds else None, START + at, RULE)
        if alert is not None and alert.began_ms:
            assert not holds or alert.since_ms <= START + at
            assert not (alert.ended_ms and holds)
