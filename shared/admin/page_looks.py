"""Looks at the pages of a site, in the form that console and command line show."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import redis

from shared.config.sites.site import Site
from shared.domain.looks.answers import Grade
from shared.sitemap import w3c_dates
from shared.store.looks.look_store import BrokenPage, LookStore
from shared.store.looks.summary import LookSummaries, LookSummary

SHOWN = 200
"""Broken pages that are listed at once."""

WORDS = {Grade.GOOD: "good", Grade.ODD: "odd", Grade.UNSURE: "unsure", Grade.BROKEN: "broken"}


class PageFinding(NamedTuple):
    """A page that is not good: `grade` and `why`, since when, in how many looks, and when it was
    looked at last; `unlisted`: when it was taken out (empty: it is listed).
    """

    loc: str
    grade: str
    why: str
    since: str
    times: int
    seen: str
    unlisted: str

    @classmethod
    def of(cls, loc: str, page: BrokenPage) -> PageFinding:
        """Return what is kept of the page `loc`."""
        out = _when(page.unlisted_s) if page.unlisted_s else ""
        grade = WORDS[Grade(page.grade)]
        return cls(loc, grade, page.why, _when(page.since_s), page.times, _when(page.at_s), out)


class LookReport(NamedTuple):
    """Looks at one site: `on` if it is configured for them, the summary (None: no look so far), the
    alarms, and the pages that are not good, the worst first.
    """

    on: bool
    summary: LookSummary | None
    alarms: tuple[str, ...]
    found: tuple[PageFinding, ...]

    def plain(self) -> dict[str, Any]:
        """Return the report as JSON values."""
        summary = None if self.summary is None else self.summary._asdict()
        return {
            "on": self.on, "summary": summary, "alarms": list(self.alarms),
            "pages": [each._asdict() for each in self.found],
        }  # fmt: skip


def report(client: redis.Redis, name: str, site: Site) -> LookReport:
    """Return the looks at the pages of the site `name`. Raises StoreError."""
    if site.pages is None:
        return LookReport(on=False, summary=None, alarms=(), found=())
    summary = LookSummaries(client, name).get()
    alarms = summary.alarms(site.pages) if summary else []
    broken = LookStore(client, name).all_broken()
    found = (PageFinding.of(loc, page) for loc, page in broken.items())
    return LookReport(on=True, summary=summary, alarms=tuple(alarms), found=tuple(found))


def of_page(client: redis.Redis, name: str, loc: str) -> Mapping[str, Any]:
    """Return the last look at the page `loc` as `looked`, with the proof of its last change;
    nothing if none is kept. Raises StoreError.
    """
    store = LookStore(client, name)
    (record,), broken = store.records([loc]), store.broken(loc)
    if record is None:
        return {}
    answer: dict[str, Any] = {
        "at": _when(record.at_s), "status": record.status, "grade": WORDS[record.grade]
    }  # fmt: skip
    if broken is not None:
        answer |= {"why": broken.why, "since": _when(broken.since_s), "times": broken.times}
        if broken.unlisted_s:
            answer["unlisted"] = _when(broken.unlisted_s)
    if record.print:
        answer["fingerprint"] = record.print.hex()
    if record.before:
        answer |= {"before": record.before.hex(), "changed": _when(record.changed_s)}
    return {"looked": answer}


def _when(seconds: int) -> str:
    return w3c_dates.from_epoch_s(seconds)
