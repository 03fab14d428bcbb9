"""The message about alerts: what began and what ended, as a text and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Any, NamedTuple

from shared.alerts.conditions import TITLES
from shared.alerts.lifecycle import Alert, AlertKey, Announcement
from shared.clock import span
from shared.sitemap import w3c_dates
from shared.visible_text import visible

SHOWN = 20
"""Sites that a text names for each condition: a full disk concerns hundreds."""

_LONGEST_SUBJECT = 120
_BEGAN, _ENDED, _TEST = "alerts.began", "alerts.ended", "alerts.test"


class AlertMessage(NamedTuple):
    """One message of the installation `name`, written at `at_ms` (ms since 1970).

    A message that is sent again keeps its `ident`. `left` is the number of alerts that are active
    besides those that began. With neither `began` nor `ended` it is a test.
    """

    ident: str
    name: str
    at_ms: int
    began: tuple[Mapping[str, Any], ...] = ()
    ended: tuple[Mapping[str, Any], ...] = ()
    left: int = 0

    @property
    def kind(self) -> str:
        """Type of the event: `alerts.began` if anything began."""
        if self.began:
            return _BEGAN
        return _ENDED if self.ended else _TEST

    @property
    def subject(self) -> str:
        """One line that says what happened."""
        parts = [_heading(self.began)] if self.began else []
        parts += [f"over: {_heading(self.ended)}"] if self.ended else []
        said = "; ".join(parts) or "test of the alerts"
        said = f"[{visible(self.name)}] {said}"
        return said if len(said) <= _LONGEST_SUBJECT else f"{said[: _LONGEST_SUBJECT - 3]}..."

    def lines(self) -> Iterator[str]:
        """Yield the lines of the text."""
        if self.kind == _TEST:
            yield f"This is a test of the alerts of sitemapd at {visible(self.name)}."
            return
        for head, some in (("Began", self.began), ("Ended", self.ended)):
            if some:
                yield f"{head}:"
                yield from _listed(some)
                yield ""
        if self.left:
            yield f"{self.left:,} more {'is' if self.left == 1 else 'are'} active: sitemapd alerts"

    @property
    def text(self) -> str:
        """The whole text."""
        return "\n".join(self.lines()).strip() + "\n"

    def plain(self) -> dict[str, Any]:
        """Return the message as JSON values, in the shape that Standard Webhooks proposes."""
        data = {
            "id": self.ident, "name": self.name, "summary": self.subject,
            "began": list(self.began), "ended": list(self.ended), "active": self.left
            + len(self.began),
        }  # fmt: skip
        timestamp = w3c_dates.from_epoch_s(self.at_ms // 1000)
        return {"type": self.kind, "timestamp": timestamp, "data": data}


def message_of(
    announced: Announcement, ident: str, name: str, now_ms: int, active: int
) -> AlertMessage:
    """Return the message about `announced`; `active` is the number of all active alerts."""
    began, ended = (
        tuple(described(key, alert) for key, alert in sorted(alerts.items()))
        for alerts in announced
    )
    return AlertMessage(ident, name, now_ms, began, ended, active - len(began))


def described(key: AlertKey, alert: Alert) -> dict[str, Any]:
    """Return an alert as JSON values."""
    site = {"site": key.site or None}
    return {
        "condition": key.condition, "title": TITLES.get(key.condition, key.condition), **site,
        "said": alert.said, "todo": alert.todo,
        "since": w3c_dates.from_epoch_s(alert.since_ms // 1000),
        "ended": w3c_dates.from_epoch_s(alert.ended_ms // 1000) if alert.ended_ms else None,
        "for_s": max(0, alert.ended_ms - alert.since_ms) // 1000 if alert.ended_ms else None,
    }  # fmt: skip


def _heading(alerts: tuple[Mapping[str, Any], ...]) -> str:
    """Return the conditions of `alerts`, with the site or the number of sites of each."""
    said = []
    for title, some in groupby(alerts, key=lambda each: each["title"]):
        sites = [each["site"] for each in some if each["site"]]
        of = f" at {sites[0]}" if len(sites) == 1 else f" at {len(sites)} sites" if sites else ""
        said.append(f"{title}{of}")
    return ", ".join(said)


def _listed(alerts: tuple[Mapping[str, Any], ...]) -> Iterator[str]:
    for title, of in groupby(alerts, key=lambda each: each["title"]):
        some = list(of)
        for each in some[:SHOWN]:
            where = f"{each['site']}: " if each["site"] else ""
            if each["ended"]:
                yield f"- {where}{title}, after {span(each['for_s'])}"
                continue
            yield f"- {where}{visible(each['said'])}"
            yield f"  {visible(each['todo'])}"
        if len(some) > SHOWN:
            yield f"- {title}: {len(some) - SHOWN:,} more sites"
