"""Shrink guard: detect a publish that drops too many pages of a shard at once (RELIABILITY T32)."""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple


class Peak(NamedTuple):
    """The most pages a shard file listed in its window, and the window's start (s since 1970)."""

    urls: int
    since: int


class ShrinkVerdict(NamedTuple):
    """Verdict on a publish: `holds` if it must wait, measured against `reference` pages.

    `peak` is to be stored if the publish is done.
    """

    holds: bool
    reference: int
    peak: Peak


class ShrinkRule(NamedTuple):
    """Limit: at most `share` of the pages may go within `window_s` seconds, and always fewer than
    `least`.

    A share of 1 permits everything. A window begins with the first publish after the end of the
    previous one, or with a publish that lists more pages than any in it.
    """

    share: Fraction
    window_s: float
    least: int

    @classmethod
    def of(cls, share: float, minutes: float, least: int) -> ShrinkRule:
        """The rule of the settings; 0.3 means three tenths, not the binary number near it."""
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
        """Judge a publish of `urls` pages where `published` are listed.

        `moved` of these are listed by other files now and are not dropped; an administrator has
        `confirmed` a drop to that many. `now` is the wall clock (s since 1970). If it jumps by more
        than the window, either way, the peak is discarded as at the end of a window: `published`
        still counts, so a batch is still held, and no peak counts for more than two windows.
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
