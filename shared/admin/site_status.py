"""Status of a site, and the listing state of one of its pages."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import redis

from shared.config.sites.site import Site
from shared.domain import expiry
from shared.domain.batch_state import NEWS
from shared.domain.deferral import AT, Deferral
from shared.domain.page_record import Arrival, PageRecord, digest_of
from shared.events.event import SchemaError
from shared.sitemap import fragments, shards, urls, w3c_dates
from shared.sitemap.entry import Entry
from shared.sitemap.shards import Shard
from shared.store.layouts.version import CURRENT, Layout
from shared.store.operations.event_log import EventLog, LoggedEvent
from shared.store.operations.loop_health import LoopHealth, of_sites
from shared.store.operations.site_snapshot import SiteSnapshot, SnapshotReader
from shared.store.pages.changes import loc_of
from shared.store.pages.lookup import PageLookup
from shared.store.publishing.publish_state import PublishState
from shared.store.publishing.quarantine import QuarantineCause
from shared.store.publishing.shrink_holds import ShrinkHold
from shared.store.round_trips import Reading, gathered, read
from shared.store.targets.target_state import TargetRecord

LATELY = 5_000
"""Number of last decisions searched for those about one page."""


class Inspector:
    """Status of one site; every answer is a mapping of JSON values."""

    def __init__(self, client: redis.Redis, name: str, site: Site) -> None:
        self._client, self._name, self._site = client, name, site
        self._lookup = PageLookup.of(client, name, site)
        self._publishing = PublishState(client, name)
        self._history = EventLog(client, name)

    def status(self) -> dict[str, Any]:
        """Return counts, waiting work and its age (s), and the time of the last publish."""
        return statuses(self._client, {self._name: self._site})[0]

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
            elif page.was_left:
                answer["why"] = "the latest event removed it"
            else:
                answer["why"] = "looks at the page found it broken"
            answer |= self._deferred(loc, page)
            shard = self.shard_of(page)
            hold = self._publishing.shrink.held().get(shard) if shard else None
            if shard and hold:
                answer["held"] = _held(shard, hold)
                answer["why"] = self._why_held(loc, page, shard)
        if self._site.pages is not None:
            from shared.admin import page_looks

            answer |= page_looks.of_page(self._client, self._name, loc)
        lately = [past for past in self._history.decisions(LATELY) if past.subject == loc][::-1]
        if changes := [past for past in lately if past.changed]:
            answer["since"] = _arrived(changes[-1])
        answer["lately"] = [
            {"event": past.event, "at": _arrived(past), "decision": past.reason} for past in lately
        ]
        return answer

    def _appears(self, loc: str, page: PageRecord) -> str | None:
        """Return when the page will be listed as news; None if it is not scheduled."""
        stored = self._lookup.coming([NEWS + loc]).get(NEWS + loc)
        at = None if stored is None else expiry.appears_ms(stored, page)
        return None if at is None else w3c_dates.from_epoch_s(at // 1000)

    def _deferred(self, loc: str, page: PageRecord) -> dict[str, str]:
        """Return when the page will be listed, or until when it is, if its event says so."""
        stored = self._lookup.coming([AT + loc]).get(AT + loc)
        try:
            deferral = Deferral.unpack(stored) if stored else None
        except SchemaError:  # said by the check of the state
            return {}
        if deferral is None or deferral.stamp != page.stamp:
            return {}
        due = w3c_dates.from_epoch_s(deferral.due_ms // 1000)
        if deferral.event.publish_at is None and deferral.event.expires is None:
            from shared.domain.looks import held_events

            if page.live:
                return {"date_waits": f"{deferral.event.lastmod} until the page has changed"}
            return {"why": f"{held_events.GATED}, {due} at the latest", "listed_from": due}
        if page.live:
            return {"listed_until": due}
        return {"why": f"it is to be published at {due}", "listed_from": due}

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


def _arrived(past: LoggedEvent) -> str:
    """Return when the event of a decision arrived; of one that time made, when it was made."""
    return w3c_dates.from_epoch_s(Arrival.of(past.event or past.at).ms // 1000)


def statuses(client: redis.Redis, sites: Mapping[str, Site]) -> list[dict[str, Any]]:
    """Return the status of each of these sites, in as few round trips as that of one."""
    snapshots = SnapshotReader(dict.fromkeys(sites, ()), "signs")
    parts: list[Reading[Any]] = [
        LoopHealth(client).reports_reading(), snapshots.reading(sites, time.time())
    ]  # fmt: skip
    reports, found = read(client, gathered(parts))
    answers = [
        status_of(name, site, snapshot)
        for (name, site), snapshot in zip(sites.items(), found, strict=True)
    ]
    of_sites(reports, answers)
    return answers


def worst_first(answers: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return statuses of sites, those first that need somebody or wait longest."""

    def rank(each: Mapping[str, Any]) -> tuple[float, ...]:
        wrong = bool(each["stopped"]), len(each["quarantined"]), len(each["failing"])
        waits = max(each["oldest_s"] or 0.0, each["dirty_for_s"])
        return *(-number for number in wrong), -each["dead_events"], -len(each["held"]), -waits

    return sorted(answers, key=rank)


def status_of(name: str, site: Site, snapshot: SiteSnapshot) -> dict[str, Any]:
    """Return the status of a site (Inspector.status), without what is known of the loops of
    workers.
    """
    waiting, files, news = snapshot.depth, snapshot.files, site.routing.news
    latest = max((file.lastmod for file in files.values()), default=None)
    stopped, single = snapshot.quarantined
    disagrees = snapshot.report.disagreeing() if snapshot.report else {}
    return {
        "site": name,
        "base_url": site.base_url,
        "urls": snapshot.urls,
        "files": len(files),
        "published_urls": sum(
            file.urls for shard, file in files.items() if shard.section not in news
        ),
        "last_publish": None if latest is None else w3c_dates.from_epoch_s(latest),
        "waiting_events": waiting.events,
        "oldest_s": waiting.age_s(waiting.oldest_ms),
        "in_flight": waiting.in_flight,
        "accepted_events": snapshot.accepted,
        "dirty_files": waiting.files,
        "dirty_for_s": waiting.age_s(waiting.files_since_ms) or 0.0,
        "publishes": snapshot.publishes,
        "dead_events": snapshot.dead,
        "paused": sorted(snapshot.paused),
        "failing": [],
        "disagrees": [f"{kind} {times}" for kind, times in disagrees.items()],
        "held": [_held(shard, hold) for shard, hold in snapshot.held.items()],
        "stopped": None if stopped is None else _cause(stopped),
        "quarantined": [{"shard": str(shard), **_cause(cause)} for shard, cause in single.items()],
        "targets": _targets(site, snapshot),
        "layout": _layout(snapshot.layout),
        "resync": [
            {"scope": str(scope), "since": w3c_dates.from_epoch_s(when // 1000)}
            for scope, when in snapshot.resyncs.items()
        ],
    }


def _layout(layout: Layout) -> str:
    text = str(CURRENT if layout.stored is None else layout)
    return text if layout.current else f"{text}, not migrated"


def _targets(site: Site, snapshot: SiteSnapshot) -> list[dict[str, Any]]:
    """Return the state of each target, of a site with several."""
    now_ms = snapshot.depth.now_ms

    def age(since_ms: int) -> float:
        return max(0.0, (now_ms - since_ms) / 1000) if since_ms else 0.0

    return [
        {
            "target": each.ident, "url": each.url, "host": each.host,
            "publishes": max(0, record.publishes), "behind_s": age(record.behind_ms),
            "failing_s": age(record.failing_ms), "reason": record.reason,
        }
        for each in site.several_targets
        for record in [snapshot.targets.get(each.ident, TargetRecord())]
    ]  # fmt: skip


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
