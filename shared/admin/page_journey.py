"""Journey of one page from its last change to the indexes of engines: steps with their times."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import redis

from shared.admin.read_back import TITLES, FollowedPage, ReadBack, by_time
from shared.admin.timeline import Step, Timeline, Timelines
from shared.clock import span
from shared.config.sites.site import Site
from shared.domain.index_status import EngineAnswer, IndexState, PublishedPage
from shared.sitemap import w3c_dates
from shared.store.operations import crawl_report

GRADES = {
    "waiting": "busy", "in flight": "busy", "applied": "busy", "to be told": "busy",
    "being told": "busy", "held": "warn", "dead": "bad", "unchanged": "quiet", "unknown": "quiet",
}  # fmt: skip
"""Grades of the steps of a timeline that are not good."""
LOOKS = {"good": "good", "broken": "bad"}
"""Grades of looks, as those of steps: all others are a warning."""


class JourneyStep(NamedTuple):
    """One step: `grade` is good, busy, warn, bad or quiet; `at_ms` is None for what lasts,
    `after_ms` is the time since the first step.
    """

    step: str
    what: str
    grade: str
    at_ms: int | None
    after_ms: int | None = None

    @property
    def clock(self) -> str:
        """Its time by the clock in UTC; empty for what lasts."""
        return "" if self.at_ms is None else _clock(self.at_ms)

    @property
    def after(self) -> str:
        """The time since the first step in words; empty for that itself."""
        if not self.after_ms:
            return ""
        short = self.after_ms < 10_000
        return f"{self.after_ms / 1000:.3g} s" if short else span(self.after_ms / 1000)


class Journey(NamedTuple):
    """The steps of a page; `event` is the id of the event they begin with, empty if it is not kept.

    `reads` if any engine of the site is read back.
    """

    steps: tuple[JourneyStep, ...]
    event: str
    reads: bool


def journey_of(client: redis.Redis, name: str, site: Site, found: Mapping[str, Any]) -> Journey:
    """Return the journey of a page; `found` is what Inspector.entry says of it."""
    loc = str(found["loc"])
    timeline = Timelines(client, name, site).change(loc)
    page = ReadBack(client, name, site).page(loc)
    steps = [_of_timeline(step, timeline) for step in timeline.steps] if timeline else []
    if not steps and page is not None:
        steps = [*_of_page(page.chain.page)]
    if site.pages is not None and steps:
        steps += [*_of_looks(found.get("looked"), steps)]
    if not found.get("listed"):
        return Journey(_timed(steps), timeline.ident if timeline else "", reads=False)
    published = next((each.at_ms for each in steps if each.step == "published"), None)
    if published is not None:
        fetches = crawl_report.first_fetches(client, name, [loc]).get(loc, {})
        after = {crawler: at for crawler, at in fetches.items() if at >= published}
        steps += [JourneyStep("fetched", crawler, "good", at) for crawler, at in by_time(after)]
    engines = [*site.readback.engines]
    steps += [_of_engine(engine, page, published) for engine in engines]
    return Journey(_timed(steps), timeline.ident if timeline else "", bool(engines))


def _of_timeline(step: Step, timeline: Timeline) -> JourneyStep:
    what = step.what
    if step.step == "accepted" and timeline.event:
        what = str(timeline.event.get("type", ""))
    return JourneyStep(step.step, what, _grade(step), step.at_ms)


def _grade(step: Step) -> str:
    return (
        "good" if step.at_ms is not None and step.step != "dead" else GRADES.get(step.step, "busy")
    )


def _of_page(page: PublishedPage) -> Iterator[JourneyStep]:
    """Yield the steps of a page whose event is not kept any more."""
    yield JourneyStep("changed", "", "good", page.changed_ms)
    yield JourneyStep("published", page.section, "good", page.published_ms)


def _of_looks(
    look: Mapping[str, Any] | None, steps: Sequence[JourneyStep]
) -> Iterator[JourneyStep]:
    """Yield the look that saw the page change, and the last look, as far as they were not before
    the first of `steps`.
    """
    times = [step.at_ms for step in steps if step.at_ms is not None]
    first = min(times, default=0)
    if look is None or (at_ms := _within(look["at"], times)) < first:
        yield JourneyStep("not looked at", "no look at the page since", "quiet", None)
        return
    if "before" in look and (changed_ms := _within(look["changed"], times[:2])) >= first:
        proof = f"fingerprint {look['before']} before, {look['fingerprint']} now"
        yield JourneyStep("seen to have changed", proof, "good", changed_ms)
    what = look.get("why") or f"status {look['status']}, indexable"
    if "fingerprint" in look:
        what += f"; fingerprint {look['fingerprint']}"
    yield JourneyStep("looked at", what, LOOKS.get(look["grade"], "warn"), at_ms)


def _within(at: str, times: Sequence[int]) -> int:
    """Return the time of a look (ms), which is kept in whole seconds: not before those of `times`
    that are in the same second.
    """
    at_ms = w3c_dates.epoch_ms(at)
    return max((each for each in times if at_ms <= each < at_ms + 1000), default=at_ms)


def _of_engine(engine: str, page: FollowedPage | None, published: int | None) -> JourneyStep:
    title = TITLES[engine]
    answer = page.chain.answers.get(engine) if page else None
    if answer is None or page is None:
        return JourneyStep("not asked", f"{title} was not asked about it yet", "quiet", None)
    if published is not None and answer.asked_ms < published:
        return JourneyStep("not asked", f"{title} was not asked since", "quiet", None)
    said = _said(answer)
    if answer.known_ms:
        return JourneyStep(f"known to {title}", said, "good", answer.known_ms)
    # A page that an engine has just not crawled again is listed as it was.
    listed = answer.status.state is IndexState.LISTED
    step = f"{title} knows an earlier version" if listed else f"not known to {title}"
    return JourneyStep(step, said, "busy" if listed else "warn", answer.asked_ms)


def _said(answer: EngineAnswer) -> str:
    crawled = answer.status.crawled_ms
    when = f"; crawled {_clock(crawled)}" if crawled else ""
    return f"“{answer.status.said}”{when}"


def _clock(ms: int) -> str:
    return w3c_dates.from_epoch_s(ms // 1000).replace("T", " ").replace("Z", " UTC")


def _timed(steps: Sequence[JourneyStep]) -> tuple[JourneyStep, ...]:
    """Return the steps in order of time, each with the time since the first one."""
    done = sorted(
        (step for step in steps if step.at_ms is not None), key=lambda step: step.at_ms or 0
    )
    first = done[0].at_ms if done else None
    timed = [
        step._replace(after_ms=step.at_ms - first)
        for step in done
        if step.at_ms is not None and first is not None
    ]
    return (*timed, *(step for step in steps if step.at_ms is None))
