"""Lifecycle of an alert: found, begun, gone, ended; and the time to tell of it.

An alert begins once its condition has held for a while without a break, and ends once the condition
has been absent for a while. Each beginning and each end is told once; what begins and ends before
anybody was told is not told at all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from shared.alerts.conditions import Finding

HOUR_MS = 3_600_000


class AlertKey(NamedTuple):
    """Identity of an alert: its condition and its site (empty: the whole installation)."""

    condition: str
    site: str


class AlertRule(NamedTuple):
    """Time (ms) for which a condition must hold until its alert begins, and be absent until it
    ends.
    """

    after_ms: int
    end_ms: int


class Alert(NamedTuple):
    """One alert; all times in ms since 1970, 0 for what has not happened.

    `since_ms`: the condition holds; `began_ms`: the alert began; `gone_ms`: the condition is
    absent; `ended_ms`: the alert ended. `told` if a message said that it began.
    """

    said: str
    todo: str
    since_ms: int
    began_ms: int = 0
    gone_ms: int = 0
    ended_ms: int = 0
    told: bool = False

    @property
    def active(self) -> bool:
        """True from the beginning to the end of the alert."""
        return bool(self.began_ms) and not self.ended_ms


class Announcement(NamedTuple):
    """Alerts that one message tells of: those that began, and those that ended."""

    began: Mapping[AlertKey, Alert]
    ended: Mapping[AlertKey, Alert]


def advance(
    alert: Alert | None, found: Finding | None, now_ms: int, rule: AlertRule
) -> Alert | None:
    """Return the alert after a look at its condition; None if there is none (any more)."""
    if found is not None:
        if alert is None:
            alert = Alert("", "", now_ms)
        # A clock that was set back must not extend the wait.
        since = min(alert.since_ms, now_ms)
        alert = alert._replace(said=found.said, todo=found.todo, since_ms=since)
        alert = alert._replace(gone_ms=0, ended_ms=0)
        if not alert.began_ms and now_ms - since >= rule.after_ms:
            alert = alert._replace(began_ms=now_ms)
        return alert
    if alert is None or not alert.began_ms:
        return None
    if not alert.ended_ms:
        gone = min(alert.gone_ms or now_ms, now_ms)
        ended = now_ms if now_ms - gone >= rule.end_ms else 0
        alert = alert._replace(gone_ms=gone, ended_ms=ended)
    return alert if alert.told or not alert.ended_ms else None


def advance_all(
    alerts: Mapping[AlertKey, Alert], found: Mapping[AlertKey, Finding], now_ms: int,
    rules: Mapping[str, AlertRule],
) -> dict[AlertKey, Alert]:  # fmt: skip
    """Return all alerts after a look at all conditions.

    A condition without a rule (switched off) ends at once.
    """
    after = {}
    for key in dict.fromkeys((*alerts, *found)):
        rule = rules.get(key.condition, AlertRule(0, 0))
        alert = advance(alerts.get(key), found.get(key), now_ms, rule)
        if alert is not None:
            after[key] = alert
    return after


def due(
    alerts: Mapping[AlertKey, Alert], sent_ms: Sequence[int], now_ms: int, *, group_ms: int,
    hourly: int,
) -> Announcement | None:  # fmt: skip
    """Return what is to be told now; None if nothing is.

    A message waits `group_ms` after the first alert it tells of, so that what happens together is
    told together; within an hour there are at most `hourly` messages, of which `sent_ms` were sent:
    what happens beyond is told by the next one.
    """
    began = {key: alert for key, alert in alerts.items() if alert.active and not alert.told}
    ended = {key: alert for key, alert in alerts.items() if alert.ended_ms and alert.told}
    times = [each.began_ms for each in began.values()] + [each.ended_ms for each in ended.values()]
    if not times or now_ms - min(times) < group_ms:
        return None
    if sum(1 for each in sent_ms if now_ms - HOUR_MS < each <= now_ms) >= hourly:
        return None
    return Announcement(began, ended)


def told(alerts: Mapping[AlertKey, Alert], announced: Announcement) -> dict[AlertKey, Alert]:
    """Return the alerts after `announced` was told: those that ended are forgotten."""
    return {
        key: alert._replace(told=alert.told or key in announced.began)
        for key, alert in alerts.items()
        if key not in announced.ended
    }


def active(alerts: Mapping[AlertKey, Alert]) -> dict[AlertKey, Alert]:
    """Return the active alerts, the longest first."""
    found = [item for item in alerts.items() if item[1].active]
    return dict(sorted(found, key=lambda item: (item[1].began_ms, item[0])))
