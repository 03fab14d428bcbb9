"""Translation groups whose pages are on several sites: each site tells the others of its members.

A site stores the members of the others beside its own, with the name of their site, so that all of
them render the identical set (PROTOCOL H2, H3). Each site is patched as a whole, and until all of
its partners have been told of a change the group stays in `expiry`: they converge whatever fails.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import redis

from shared.config.sites.site import Site
from shared.domain.batch_state import Changes
from shared.domain.decide import include
from shared.domain.decide_batch import copied
from shared.domain.translation_groups import (
    GROUP,
    MAX_MEMBERS,
    GroupFullError,
    GroupMember,
    Members,
    own,
)
from shared.errors import StoreDownError
from shared.store.client import Scripts, answering
from shared.store.keys import keys_of
from shared.store.pages.amendments import SHARED
from shared.store.pages.expiry_schedule import ExpirySchedule
from shared.store.pages.page_repository import PageRepository
from shared.telemetry.logs import logger
from worker.ingest.event_processor import insist
from worker.ingest.group_relink import relink

AGAIN_MS = 10_000
"""Milliseconds until a partner that could not be told is told again."""

_log = logger("ingest")


class SharedGroups:
    """The groups of the site `name`, shared with its `partners`, the other sites by name."""

    def __init__(
        self, client: redis.Redis, name: str, pages: PageRepository,
        partners: Mapping[str, Site],
    ) -> None:  # fmt: skip
        self._client, self._name, self._keys = client, name, keys_of(name)
        self._partners, self._repositories = partners, dict[str, PageRepository]()
        self._pages, self._scripts = pages, Scripts(client)
        self._schedule = ExpirySchedule(client, name)
        self.failed = dict[tuple[str, bytes], str]()
        """Partner and group that it could not be told of the last time, with the reason."""
        self.touched = set[str]()
        """Partners whose pages have changed, until the caller has seen to them."""

    @property
    def shared(self) -> bool:
        """True if there is a partner."""
        return bool(self._partners)

    def tell(self, keys: Sequence[str], now_ms: int) -> int:
        """Tell the partners of the groups `keys`, due at `now_ms` (since 1970); return how many.

        Raises StoreError.
        """
        for key in keys:
            group = bytes.fromhex(key.removeprefix(GROUP))
            number, members = self._pages.lookup.groups([group])[group]
            given = {loc: each._replace(site=self._name) for loc, each in own(members).items()}
            failed = [name for name in self._partners if not self._relate(name, group, given)]
            if failed:
                self._schedule.set({key: now_ms + AGAIN_MS})
            elif not self._settled(key, group, number):
                # Changed meanwhile. Whoever told of the change first may have been overtaken.
                self._schedule.set({key: now_ms})
        return len(keys)

    def align(self, now_ms: int) -> None:
        """Tell new partners of every group, and forget the members of sites that are none any more.

        Cheap if the partners are as they were. Raises StoreError.
        """
        partners = " ".join(sorted(self._partners))
        with answering():
            found: Any = self._client.hget(self._keys.counters, SHARED)
            before = found or b""
            if before == partners.encode():
                return
            keys = self._client.scan_iter(f"{self._keys.prefix}cluster:*", count=10_000)
            groups = [key.rpartition(b":")[2].decode() for key in keys]
        gone = {*before.decode().split()} - self._partners.keys()
        for group in map(bytes.fromhex, groups if gone else ()):
            for site in gone:
                insist(partial(_related, self._pages, group, site, {}))
        if self._partners:
            self._schedule.set({GROUP + group: now_ms for group in groups})
        with answering():
            self._client.hset(self._keys.counters, SHARED, partners)

    def _relate(self, partner: str, group: bytes, given: Members) -> bool:
        """Return True if `partner` lists the pages `given` in its group."""
        try:
            pages = self._repository(partner)
            changed = insist(lambda: _related(pages, group, self._name, given))
        except StoreDownError:
            raise
        except Exception as error:  # noqa: BLE001  # the other partners are told
            _log.error(
                "group not shared", site=self._name, partner=partner, group=group.hex(),
                reason=f"{type(error).__name__}: {error}",
            )  # fmt: skip
            self.failed[partner, group] = str(error) or type(error).__name__
            return False
        self.failed.pop((partner, group), None)
        if changed:
            self.touched.add(partner)
        return True

    def _repository(self, partner: str) -> PageRepository:
        # Made when there is something to tell: each of hundreds of sites may have all others.
        if partner not in self._repositories:
            site = self._partners[partner]
            self._repositories[partner] = PageRepository.of(self._client, partner, site)
        return self._repositories[partner]

    def _settled(self, key: str, group: bytes, number: bytes) -> bool:
        keys = [self._keys.expiry, self._keys.cluster(group)]
        return bool(self._scripts("pages/settle_group", keys, key, number))


def _related(
    pages: PageRepository, group: bytes, site: str, given: Mapping[str, GroupMember]
) -> int | None:
    """Make the pages `given` the members of `group` that `site` lists; return the number of changed
    pages, None if it must be repeated.
    """
    read = pages.read_group(group)
    members = read.state.groups[group]
    others = {loc: each for loc, each in members.items() if each.site != site}
    # What a site lists itself counts more than what others say of it.
    merged = {**given, **others}
    if merged == members:
        return 0
    if len(merged) > MAX_MEMBERS:
        raise GroupFullError(f"a group has {MAX_MEMBERS} pages at most, on all sites together")
    after = copied(read.state)
    include(after, Changes(groups={group: merged}))
    relink(pages, read, after)
    decisions = [("", loc, f"translations changed on {site}", True) for loc in after.fragments]
    return len(decisions) if pages.apply(read, after, decisions=decisions) else None
