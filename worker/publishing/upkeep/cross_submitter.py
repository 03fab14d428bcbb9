"""Upkeep of the index of several hosts: which of them may be listed, and when it is written.

A host consents by its robots.txt (PROTOCOL R11), which is fetched once an hour; while it does not,
the duty of that site fails, which `status`, console and alerts show with the remedy, and is tried
again after the back-off of its loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from zlib import crc32

import redis

from shared.clock import now_ms
from shared.config.settings import Settings
from shared.config.sites.site import Site
from shared.errors import ConsentError
from shared.sitemap import robots
from shared.sitemap.shards import HOSTS, Shard
from shared.store.keys import keys_of
from shared.store.leases import held_lease
from shared.store.publishing.cross_submission import CrossSubmission, HostRecord
from shared.store.publishing.publish_state import PublishState
from shared.store.targets.target_state import INDEX, TargetState
from worker.http.robots_txt import robots_txt
from worker.loops.companions import SiteCompanion
from worker.loops.loop import Loop

CONSENT_MS = 3_600_000
_AGENT = "Mozilla/5.0 (compatible; sitemapd-hosts)"


class CrossSubmitter(SiteCompanion[CrossSubmission]):
    """Upkeep for all sites, by the worker `owner`; it has no thread without such a site."""

    POLL_S = 1.0
    """Until the index has what another site published."""

    def __init__(
        self, settings: Settings, client: redis.Redis, owner: str,
        quiet: Callable[[], bool] = lambda: False, *, clock: Callable[[], int] = now_ms,
    ) -> None:  # fmt: skip
        """Prepare the sites with an index of several hosts. While `quiet` returns True nothing is
        done. `clock` returns ms since 1970.
        """
        self._client, self._owner, self._clock = client, owner, clock
        self._every: Mapping[str, Site] = {}
        super().__init__(settings, Loop("hosts"), quiet)

    def _serves(self, site: Site) -> bool:
        return bool(site.outputs.hosts)

    def _build(self, name: str, site: Site) -> CrossSubmission:  # noqa: ARG002
        return CrossSubmission(self._client, name)

    def prepare(self, settings: Settings) -> Callable[[], None]:
        """Build what new and changed sites need; the returned function puts it in force."""
        put = super().prepare(settings)

        def put_in_force() -> None:
            before, self._every = self._every, settings.sites
            put()
            for name, (site, _) in self._sites.items():
                if any(before.get(n) != self._every.get(n) for n in site.outputs.hosts):
                    self.loop.forget(name)  # what was missing may be there soon

        return put_in_force

    def look(self) -> None:
        """Look at robots.txt of each host where it is due, and have the index of a site written
        that lacks what others published.
        """
        for name, (site, submission) in self._sites.items():
            if self.loop.stopping or self._quiet():
                return
            if self.loop.due(name):
                key = keys_of(name).hosts_lease
                with self.loop.at(name), held_lease(self._client, key, self._owner) as lease:
                    if lease is not None:
                        self._look(name, site, submission, lease.keep)

    def _look(
        self, name: str, site: Site, submission: CrossSubmission, keep: Callable[[], None]
    ) -> None:
        stored, asked = submission.read()
        records = {
            other: record
            for other, record in stored.items()
            if other in site.outputs.hosts and record.asked == self._question(site, other)
        }
        submission.drop(stored.keys() - records.keys())
        due_ms = self._clock() - CONSENT_MS
        for other in site.outputs.hosts:
            fresh = other in records and records[other].named and records[other].seen_ms > due_ms
            if not fresh and other != name and self.loop.due(name, other):
                keep()
                with self.loop.at(name, other):
                    self._ask(submission, site, other, records)
        listed = sorted(other for other, record in records.items() if record.named)
        publishes = submission.publishes(listed)
        if publishes != asked and self._have_written(name, site):
            submission.ask(publishes)

    def _question(self, site: Site, other: str) -> int:
        """Return what stays the same while the settings that a record depends on do."""
        member = self._every.get(other)
        of = (member.base.prefix, member.index_shards) if member else ()
        return crc32(repr((site.base.prefix, *of)).encode())

    def _ask(
        self, submission: CrossSubmission, site: Site, other: str, records: dict[str, HostRecord]
    ) -> None:
        """Store whether `other` may be listed, in `records` as well. Raises ConsentError if not,
        OutboundError if its robots.txt cannot be read: then it stays as it was.
        """
        member = self._every.get(other)
        if member is None:
            raise ConsentError(f"outputs.hosts names {other}, and no site has that name")
        url = site.base.url(HOSTS)
        named = self._consents(site, member, url)
        asked = self._question(site, other)
        record = HostRecord(named, self._clock(), member.index_shards, asked)
        submission.store(other, record)
        records[other] = record
        if not named:
            raise ConsentError(
                f"{other} is not listed in {HOSTS}: {member.base.origin}/robots.txt does not name "
                f"it. Add the line Sitemap: {url} (robots_also in the table outputs of {other})"
            )

    def _consents(self, site: Site, member: Site, url: str) -> bool:
        if member.base.prefix.startswith(site.base.prefix):
            return True  # the same host, below the index: nothing to cross
        return url in robots.sitemaps(robots_txt(member.base.origin, _AGENT, self.loop.progress))

    def _have_written(self, name: str, site: Site) -> bool:
        """Have the index written; False if the site itself has published nothing."""
        state = PublishState(self._client, name)
        if (shard := next(_published(state), None)) is None:
            return False  # sitemap-hosts.xml begins with the first file of its own site
        state.mark_dirty([shard])
        for target in site.several_targets:
            TargetState(self._client, name, target.ident, self._owner).mistrust([f"{INDEX}0"])
        return True


def _published(state: PublishState) -> Iterator[Shard]:
    for section in state.sections():
        yield from state.files([section])
