"""How all sites are doing, what needs somebody, and letting held files shrink."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from werkzeug.datastructures import MultiDict

from shared.errors import Fault, InvalidError
from shared.shards import Shard
from shared.store.holds import Holds
from webhook.console import charts, words, workers
from webhook.console.charts import Point
from webhook.console.frame import Done, Frame, Shown, asked_for

SITES = 50
"""Sites on one page: each costs some round trips to Redis."""
LATE_S = 60
"""Files that wait longer than that are worth a look: a publish takes milliseconds."""


class Concern(NamedTuple):
    """Something that needs somebody: `grade` bad or warn, what it is, what to do, a command, the
    endpoint of the page that shows it.
    """

    grade: str
    said: str
    todo: str
    command: Sequence[str] = ()
    see: str = ""


def install(frame: Frame) -> None:
    """The page Overview, and the action `confirm`."""
    services = frame.services

    def show() -> Shown:
        names = list(services.sites)
        asked, last = asked_for("page"), max(len(names) - 1, 0) // SITES
        at = min(int(asked), last) if asked.isascii() and asked.isdigit() else 0
        shown = names[at * SITES : (at + 1) * SITES]
        alive = workers.heard_of(services.client, shown)
        cards = [_card(frame, name) for name in shown]
        values = {
            "cards": cards, "workers": alive, "idle": bool(shown) and not any(alive.values()),
            "newer": frame.address("Overview", page=str(at - 1)) if at else "",
            "older": frame.address("Overview", page=str(at + 1))
            if len(names) > (at + 1) * SITES else "",
        }  # fmt: skip
        return Shown("overview.html", values)

    def confirm(form: MultiDict[str, str]) -> Done:
        name, asked = form.get("site", ""), form.get("subject", "")
        if name not in services.sites:
            raise InvalidError(Fault("site", "config", f"{name[:80]!r} is not configured"))
        holds = Holds(services.client, name)
        found = [
            (shard, hold) for shard, hold in holds.held().items()
            if str(shard) == asked and str(hold.urls) == form.get("urls")
        ]  # fmt: skip
        if not found:
            detail = "is not held any more, or with another number of pages: look again"
            raise InvalidError(Fault(asked, "held", detail))
        ((shard, hold),) = found
        holds.confirm({shard: hold.urls})
        said = f"{shard} may shrink from {hold.reference:,} to {hold.urls:,} pages"
        return Done(said, name, asked)

    frame.page("Overview", "/", show, live=True)
    frame.action("confirm", "/confirm", confirm)


def _card(frame: Frame, name: str) -> Mapping[str, Any]:
    """One site on the page."""
    status = frame.services.inspector(name).status()
    found = list(concerns(name, status, sourced=bool(frame.services.sites[name].source)))
    grade = min((concern.grade for concern in found), default="")  # bad before warn
    busy = status["waiting_events"] or status["dirty_files"]
    state = {"bad": "Needs you", "warn": "Look here"}.get(
        grade, "Working" if busy else "Up to date"
    )
    return {
        **status, "concerns": found, "grade": grade or ("busy" if busy else "good"), "state": state,
        "chart": latency(name, ()),
        "held": [hold | {"command": _confirming(name, hold["shard"])} for hold in status["held"]],
    }  # fmt: skip


def latency(name: str, points: Sequence[Point]) -> str:
    """How long events of the site `name` took lately, from accepted to visible, as a chart."""
    return charts.latency(points, "Accepted to visible, by minute", f"latency-{name}")


def concerns(name: str, status: Mapping[str, Any], *, sourced: bool) -> Iterator[Concern]:
    """What of a site's `status` (shared.inspector) needs somebody, and what helps."""
    if dead := status["dead_events"]:
        said = f"{words.plural(dead, 'event')} failed five times and {'is' if dead == 1 else 'are'}"
        todo = "What they say about their pages is not published."
        yield Concern("bad", f"{said} set aside.", todo, see="console.failed")
    if status["dirty_for_s"] > LATE_S:
        late = words.span(status["dirty_for_s"])
        todo = "Is a worker alive, is the disk full, may it write there? This says what differs:"
        yield Concern(
            "bad", f"Files have waited {late} to be published.", todo, _of(name, "verify")
        )
    if held := status["held"]:
        said = (
            f"The shrink guard holds {words.plural(len(held), 'file')} that would lose many pages."
        )
        yield Concern("warn", said, "Confirm below if that is meant; else send the pages again.")
    if asked := status["resync"]:
        said = f"{words.plural(len(asked), 'resync')} waits for a comparison with the source."
        more = () if sourced else ("--against", "SOURCE")
        todo = "" if sourced else "The site has no source configured: name one."
        yield Concern("warn", said, todo, (*_of(name, "reconcile"), *more))


def _of(name: str, command: str) -> tuple[str, ...]:
    return ("sitemapd", command, "--site", name)


def _confirming(name: str, shard: Shard | str) -> tuple[str, ...]:
    return ("sitemapd", "confirm", str(shard), "--site", name)
