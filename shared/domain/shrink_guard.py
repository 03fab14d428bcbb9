"""When a publish drops too much of a shard at once to be believed (RELIABILITY T32)."""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple


class Peak(NamedTuple):
    """The most pages that a shard file has listed lately, and since when (s since 1970)."""

    urls: int
    since: int


class ShrinkVerdict(NamedTuple):
    """Whether a publish `holds` back, measured against `reference` pages.

    `peak` is what to remember if it is done.
    """

    holds: bool
    reference: int
    peak: Peak


class ShrinkRule(NamedTuple):
    """At most `share` of the pages may go within `window_s` seconds; fewer than `least` always may.

    A share of 1 permits everything. The window begins with the first publish after the one before
    it has passed, or with a publish that lists more pages than any in it.
    """

    share: Fraction
    window_s: float
    least: int

    @classmethod
    def of(cls, share: float, minutes: float, least: int) -> ShrinkRule:
        """The rule as it is configured; 0.3 means three tenths, not the binary number near it."""
        return cls(Fraction(repr(share)), minutes * 60, least)

    def judge(
        self,
        published: int,
        peak: Peak,
        urls: int,
        now: int,
        *,
        moved: int = 0,
        confirmed: int | None = None,
    ) -> ShrinkVerdict:
        """What to do about a publish of `urls` pages where `published` are listed.

        `moved` of these are listed by other files now and are not dropped; an administrator has
        `confirmed` a drop to that many. `now` is the wall clock (s). Where it jumps by more than
        the window, either way, the peak is forgotten as if the window had passed: what is published
        still counts, so a batch is held all the same, and nothing counts for more than two windows.
        """
        fresh = abs(now - peak.since) < self.window_s and peak.urls >= published
        top = Peak(peak.urls, min(peak.since, now)) if fresh else Peak(published, now)
        if moved:
            top = top._replace(urls=max(0, top.urls - moved))
        if confirmed is not None and confirmed < top.urls:
            top = Peak(confirmed, now)
        dropped = top.urls - urls
        holds = dropped >= self.least and dropped > self.share * top.urls
        return ShrinkVerdict(holds, top.urls, top if dropped >= 0 else Peak(urls, now))
