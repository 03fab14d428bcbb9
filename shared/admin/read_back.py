"""Answers of engines about the published pages of a site: one line a page, delays by section.

The chain of a page is: changed, published, first fetched by each crawler (access logs, as far as
`sitemapd crawl` read them), known to each engine (as far as it was asked).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import redis

from shared.clock import percentile
from shared.config.sites.site import Site
from shared.domain.index_status import EngineAnswer
from shared.sitemap import w3c_dates
from shared.store.notify.notification_queue import NotificationQueue
from shared.store.operations import crawl_report
from shared.store.readback.counts_reading import late_ms
from shared.store.readback.page_chains import PageChain, PageChains
from shared.store.readback.reading_state import ReadingState

TITLES = {"google": "Google", "bing": "Bing", "yandex": "Yandex"}
"""Engines that are read, as sentences call them."""


class FollowedPage(NamedTuple):
    """A page that is followed, and the first fetch of each crawler after its publish (ms)."""

    chain: PageChain
    fetched: Mapping[str, int]


class ReadBack:
    """Answers of the engines that one site reads."""

    def __init__(self, client: redis.Redis, name: str, site: Site) -> None:
        self._client, self._name, self._site = client, name, site
        self._config, self.engines = site.readback, [*site.readback.engines]
        self._state, self._budget = ReadingState(client, name), NotificationQueue(client, name)
        self._chains = PageChains(client, name, site.readback.pages)

    def states(self, now_ms: int) -> list[dict[str, Any]]:
        """Return the state of each engine as JSON values: requests, pages, its back-off."""
        counts = self._chains.counts(self.engines, late_ms(self._config, now_ms))
        readings = self._state.readings(self.engines)
        found = []
        for name in self.engines:
            reading, count, breaker = readings[name], counts[name], readings[name].breaker
            resting = breaker is not None and now_ms < breaker.until
            found.append({
                "engine": name, "requests_today": self._budget.spent(f"readback:{name}", now_ms),
                "daily": self._config.engines[name].daily, "known": count.known,
                "never_asked": count.unasked, "unknown": count.unknown, "unknown_late": count.late,
                "last_read": _when(max(reading.read_ms, reading.sitemaps_ms)),
                "resting_until": _when(breaker.until) if breaker and resting else None,
                "failing": breaker is not None and breaker.failures > 0,
                "reason": breaker.why if breaker else "",
            })  # fmt: skip
        return found

    def sitemaps(self) -> Iterator[dict[str, Any]]:
        """Yield what each engine said of each sitemap, as JSON values."""
        for name in self.engines:
            for each in self._state.sitemaps(name):
                yield {
                    "engine": name, "sitemap": each.url, "read": _when(each.read_ms),
                    "errors": each.errors, "warnings": each.warnings, "urls": each.urls,
                    "said": each.said,
                }  # fmt: skip

    def newest(self, most: int) -> list[FollowedPage]:
        """Return the `most` pages that were published last."""
        return self._with_fetches(self._chains.newest(self.engines, most))

    def page(self, loc: str) -> FollowedPage | None:
        """Return the page `loc`; None if it is not followed."""
        found = self._with_fetches(self._chains.read([loc], self.engines))
        return found[0] if found else None

    def late(self, engine: str, now_ms: int, most: int) -> list[FollowedPage]:
        """Return up to `most` pages that `engine` did not know hours after their publish."""
        until = late_ms(self._config, now_ms)
        return self._with_fetches(self._chains.late(engine, until, most, self.engines))

    def sections(self) -> list[dict[str, Any]]:
        """Return the delays of each section and engine as JSON values, from publish to the crawl
        that the engine states, and to the answer that it knows the page.
        """
        return delays_of(self._chains.all(self.engines), self.engines)

    def forget(self) -> int:
        """Delete what is kept of every engine, configured or not; return the number of pages."""
        count = self._chains.count()
        self._chains.forget(TITLES)
        self._state.forget()
        return count

    def summary(self) -> list[dict[str, Any]]:
        """Return `sections` as a worker stored them last."""
        return self._state.summary()

    def _with_fetches(self, chains: Sequence[PageChain]) -> list[FollowedPage]:
        fetches = crawl_report.first_fetches(
            self._client, self._name, [chain.loc for chain in chains]
        )
        return [
            FollowedPage(chain, {
                crawler: at for crawler, at in fetches.get(chain.loc, {}).items()
                if at >= chain.page.published_ms
            })
            for chain in chains
        ]  # fmt: skip


def delays_of(chains: Iterable[PageChain], engines: Sequence[str]) -> list[dict[str, Any]]:
    """Return the delays of `chains` by section and engine, as JSON values; in seconds."""
    numbers = dict[tuple[str, str], int]()
    crawled, known = dict[tuple[str, str], list[int]](), dict[tuple[str, str], list[int]]()
    for chain in chains:
        published = chain.page.published_ms
        for engine in engines:
            key = chain.page.section, engine
            numbers[key] = numbers.get(key, 0) + 1
            answer = chain.answers.get(engine)
            if answer is None:
                continue
            if answer.status.crawled_ms >= published:
                crawled.setdefault(key, []).append(answer.status.crawled_ms - published)
            if answer.known_ms:
                known.setdefault(key, []).append(answer.known_ms - published)
    return [
        {
            "section": key[0], "engine": key[1], "pages": number,
            "known": len(known.get(key, ())), **_percentiles("crawled", crawled.get(key)),
            **_percentiles("known", known.get(key)),
        }
        for key, number in sorted(numbers.items())
    ]  # fmt: skip


def plain(page: FollowedPage) -> dict[str, Any]:
    """Return a page as JSON values."""
    loc, published, answers = page.chain
    return {
        "loc": loc, "section": published.section, "changed": _when(published.changed_ms),
        "published": _when(published.published_ms),
        "fetched": {crawler: _when(at) for crawler, at in sorted(page.fetched.items())},
        "engines": {name: _plain(answer) for name, answer in answers.items()},
    }  # fmt: skip


def line_of(page: FollowedPage) -> str:
    """Return a page as one line: each step and its time, with the date where it is another one."""
    loc, published, answers = page.chain
    steps = [
        ("changed", published.changed_ms), ("published", published.published_ms),
        *((f"fetched by {crawler}", at) for crawler, at in by_time(page.fetched)),
        *((f"known to {TITLES[name]} as of", answer.known_ms)
          for name, answer in answers.items() if answer.known_ms),
    ]  # fmt: skip
    said, day = [], ""
    for step, at in steps:
        date, _, time = w3c_dates.from_epoch_s(at // 1000).removesuffix("Z").partition("T")
        said.append(f"{step} {time}" if date == day else f"{step} {date} {time}")
        day = date
    said += [
        f"{TITLES[name]} at {_when(answer.asked_ms)}: {answer.status.said}"
        for name, answer in answers.items() if not answer.known_ms
    ]  # fmt: skip
    return f"{loc}  {', '.join(said)}"


def by_time(fetched: Mapping[str, int]) -> list[tuple[str, int]]:
    """Return the crawlers and their first fetches, the earliest first."""
    return sorted(fetched.items(), key=lambda item: (item[1], item[0]))


def _plain(answer: EngineAnswer) -> dict[str, Any]:
    status = answer.status
    return {
        "state": status.state, "said": status.said, "crawled": _when(status.crawled_ms),
        "asked": _when(answer.asked_ms), "known": _when(answer.known_ms),
    }  # fmt: skip


def _percentiles(name: str, delays: Sequence[int] | None) -> dict[str, float | None]:
    ordered = sorted(delays or ())
    return {
        f"{name}_p{round(share * 100)}_s": percentile(ordered, share) / 1000 if ordered else None
        for share in (0.5, 0.95)
    }


def _when(at_ms: int) -> str | None:
    return w3c_dates.from_epoch_s(at_ms // 1000) if at_ms else None
