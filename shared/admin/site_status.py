"""Status of a site, and the listing state of one of its pages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import redis

from shared.config.site import Site
from shared.domain import expiry
from shared.domain.batch_state import NEWS
from shared.domain.page_record import Arrival, PageRecord, digest_of
from shared.sitemap import fragments, shards, urls, w3c_dates
from shared.sitemap.entry import Entry
from shared.sitemap.shards import Shard
from shared.store.client import answering
from shared.store.keys import Keys
from shared.store.operations.checks import CheckStore
from shared.store.operations.event_log import EventLog
from shared.store.operations.loop_health import LoopHealth
from shared.store.operations.queues import Queues
from shared.store.operations.resync_requests import ResyncRequests
from shared.store.pages.changes import loc_of
from shared.store.pages.lookup import PageLookup
from shared.store.publishing.publish_state import PublishState
from shared.store.publishing.quarantine import QuarantineCause
from shared.store.publishing.shrink_holds import ShrinkHold
from shared.store.sections import Sections

LATELY = 5_000
"""Number of last decisions searched for those about one page."""


class _Counted(NamedTuple):
    """Events ever accepted, publishes, dead letters, paused queues."""

    accepted: int
    publishes: int
    dead: int
    paused: list[str]


class Inspector:
    """Status of one site; every answer is a mapping of JSON values."""

    def __init__(self, client: redis.Redis, name: str, site: Site) -> None:
        self._client = client
        self._keys = Keys(name)
        self._name, self._site = name, site
        self._lookup = PageLookup(client, name, Sections(client, name, site.limits))
        self._publishing = PublishState(client, name)
        self._history, self._queues = EventLog(client, name), Queues(client, name)

    def status(self) -> dict[str, Any]:
        """Return counts, waiting work and its age (s), and the time of the last publish."""
        files = self._publishing.files(self._publishing.sections())
        news, waiting = self._site.routing.news, self._queues.waiting()
        latest = max((file.lastmod for file in files.values()), default=None)
        counted = self._counted()
        stopped, single = self._publishing.quarantine.read()
        return {
            "site": self._name,
            "base_url": self._site.base_url,
            "urls": self._lookup.count(),
            "files": len(files),
            "published_urls": sum(
                file.urls for shard, file in files.items() if shard.section not in news
            ),
            "last_publish": None if latest is None else w3c_dates.from_epoch_s(latest),
            "waiting_events": waiting.events,
            "oldest_s": waiting.age_s(waiting.oldest_ms),
            "in_flight": waiting.in_flight,
            "accepted_events": counted.accepted,
            "dirty_files": waiting.files,
            "dirty_for_s": waiting.age_s(waiting.files_since_ms) or 0.0,
            "publishes": counted.publishes,
            "dead_events": counted.dead,
            "paused": counted.paused,
            "failing": [each.plain() for each in LoopHealth(self._client).of_site(self._name)],
            "disagrees": self._disagrees(),
            "held": [_held(shard, hold) for shard, hold in self._publishing.shrink.held().items()],
            "stopped": None if stopped is None else _cause(stopped),
            "quarantined": [
                {"shard": str(shard), **_cause(cause)} for shard, cause in single.items()
            ],
            "resync": [
                {"scope": str(scope), "since": w3c_dates.from_epoch_s(when // 1000)}
                for scope, when in ResyncRequests(self._client, self._name).open().items()
            ],
        }

    def _disagrees(self) -> list[str]:
        """Return the inconsistencies of the state that the last check found."""
        report = CheckStore(self._client, self._name).latest()
        return [f"{kind} {times}" for kind, times in report.disagreeing().items()] if report else []

    def _counted(self) -> _Counted:
        keys = self._keys
        with answering():
            pipe = self._client.pipeline(transaction=False)
            pipe.xinfo_stream(keys.inbox)
            pipe.hget(keys.counters, "publishes")
            pipe.xlen(keys.dead)
            pipe.hkeys(keys.paused)
            inbox, *rest = pipe.execute(raise_on_error=False)
            for reply in (inbox, *rest):
                # The inbox does not exist before the first event.
                if isinstance(reply, Exception) and not str(reply).startswith("no such key"):
                    raise reply
        publishes, dead, paused = rest
        accepted = 0 if isinstance(inbox, Exception) else inbox["entries-added"]
        return _Counted(
            accepted, int(publishes or 0), int(dead), sorted(queue.decode() for queue in paused)
        )

    def entry(self, loc: str) -> dict[str, Any]:
        """Return where page `loc` is listed, or why not. Raises UrlError if not of this site."""
        loc = urls.canonical(loc, self._site.base)
        page = self._lookup.find(loc)
        answer: dict[str, Any] = {"loc": loc, "listed": bool(page and page.live)}
        if page is None:
            answer["why"] = "no event about this URL was accepted, or it was deleted long ago"
        else:
            answer["version"] = w3c_dates.from_epoch_s((page.stamp >> 16) // 1000)
            if page.live:
                answer |= self._published(loc, page)
                if (news := self._lookup.find(NEWS + loc)) is not None and news.live:
                    answer["as_news"] = self._published(NEWS + loc, news)
                elif (appears := self._appears(loc, page)) is not None:
                    answer["as_news"] = {"from": appears}
            else:
                answer["why"] = "the latest event removed it"
            shard = self.shard_of(page)
            hold = self._publishing.shrink.held().get(shard) if shard else None
            if shard and hold:
                answer["held"] = _held(shard, hold)
                answer["why"] = self._why_held(loc, page, shard)
        lately = [each for each in self._history.decisions(LATELY) if each[1] == loc][::-1]
        if changes := [ident for ident, _, _, changed in lately if changed]:
            answer["since"] = w3c_dates.from_epoch_s(Arrival.of(changes[-1]).ms // 1000)
        answer["lately"] = [{"event": ident, "decision": reason} for ident, _, reason, _ in lately]
        return answer

    def _appears(self, loc: str, page: PageRecord) -> str | None:
        """Return when the page will be listed as news; None if it is not scheduled."""
        stored = self._lookup.coming([NEWS + loc]).get(NEWS + loc)
        at = None if stored is None else expiry.appears_ms(stored, page)
        return None if at is None else w3c_dates.from_epoch_s(at // 1000)

    def _why_held(self, loc: str, page: PageRecord, shard: Shard) -> str:
        name = shards.file_name(shard, self._site.form)
        assert page.place is not None
        if page.live:
            return (
                f"the shrink guard holds {name} at its previous content, so new pages "
                f"and edits wait until: sitemapd confirm --site {self._name}"
            )
        fragment = self._lookup.fragment(shard, page.place.block, loc)
        if fragment is None:
            return "the latest event removed it"
        return (
            f"the latest event removed it, but {name} still lists it: the shrink guard "
            "holds that file at its previous content"
        )

    def page(self, loc: str) -> PageRecord | None:
        """Return the record of the page with the canonical URL `loc`; None if there is none."""
        return self._lookup.find(loc)

    def shard_of(self, page: PageRecord) -> Shard | None:
        """Return the shard that lists `page`; None if it has no place."""
        return self._lookup.shard_of(page)

    def _published(self, key: str, page: PageRecord) -> Mapping[str, Any]:
        """Return where the page or news entry `key` is listed, and its entry."""
        shard = self.shard_of(page)
        assert shard is not None
        assert page.place is not None
        name = shards.file_name(shard, self._site.form)
        patch = self._lookup.waiting_patch(shard, page.place.block, digest_of(key))
        answer: dict[str, Any] = {
            "section": shard.section,
            "file": name,
            "url": self._site.base.url(name),
            "published": patch is None,
        }
        fragment = patch or self._lookup.fragment(shard, page.place.block, loc_of(key))
        if fragment:
            answer |= dict(_members(fragments.parse(fragment)))
        file = self._publishing.files([shard.section]).get(shard)
        if file is not None:
            answer["file_written"] = w3c_dates.from_epoch_s(file.lastmod)
        return answer


def _members(entry: Entry) -> Iterator[tuple[str, Any]]:
    """Yield the members of an entry besides its loc, named as in an event."""
    for name in ("lastmod", "changefreq", "priority", "images", "videos", "news"):
        if value := getattr(entry, name):
            yield name, value
    if entry.alternates:
        pairs = entry.alternates
        yield "alternates", [{"hreflang": code, "href": href} for code, href in pairs]


def _cause(cause: QuarantineCause) -> dict[str, Any]:
    return {
        "since": w3c_dates.from_epoch_s(cause.since),
        "reason": cause.reason,
        "todo": cause.todo,
    }


def _held(shard: Shard, hold: ShrinkHold) -> dict[str, Any]:
    return {
        "shard": str(shard),
        "since": w3c_dates.from_epoch_s(hold.since),
        "from": hold.reference,
        "to": hold.urls,
    }
