"""Rollback of a file: read the current state of its pages, plan, and accept the events."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import redis

from shared.admin import rollback_plan
from shared.admin.files import FileActions
from shared.admin.outcomes import ActionOutcome, command, counted
from shared.admin.queues import members
from shared.admin.rollback_plan import SINCE, PageFact, PageOwner, RollbackPlan, ShownPlan
from shared.config.sites.site import Site
from shared.domain.batch_state import NEWS
from shared.domain.page_record import Claim, PageRecord, owner_of
from shared.domain.routing import family_of
from shared.errors import Fault, InvalidError, StoreError
from shared.events.event import NATIVE
from shared.sitemap.fragments import parse
from shared.sitemap.shards import Shard
from shared.store.inbox.inbox import Inbox
from shared.store.operations.event_log import EventLog
from shared.store.operations.queues import INTAKE, Queues
from shared.store.pages.changes import unpacked
from shared.store.pages.lookup import PageLookup
from shared.store.publishing.publish_state import PublishState

_STEP = 500


class Rollback:
    """Rollback of files of one site."""

    def __init__(self, client: redis.Redis, name: str, site: Site) -> None:
        self._name, self._site = name, site
        self._files, self._queues = FileActions(client, name, site), Queues(client, name)
        self._lookup = PageLookup.of(client, name, site)
        self._history, self._inbox = EventLog(client, name), Inbox(client, name)
        self._state = PublishState(client, name)

    def plan(self, shard: Shard, to: str, shown: ShownPlan | None = None) -> RollbackPlan:
        """Plan to revert all publishes of `shard` from the newest down to the revision `to`,
        inclusive; of a plan that was `shown` those that it knew, without the pages that changed
        since.

        The lines are then those before `to`; in the same order, unless a page had left the file and
        returned since. Raises InvalidError if the revision or its lines are not kept, or the file
        lists news.
        """
        if family_of(shard.section, self._site.limits) in self._site.routing.news:
            detail = (
                "news files change with time and cannot be rolled back: send the articles again"
            )
            raise InvalidError(Fault(str(shard), "PROTOCOL W4", detail))
        revisions, now_ms = self._files.since(shard, to), self._queues.waiting().now_ms
        known = [each for each in revisions if shown is None or shown.knew(each)]
        wanted = rollback_plan.targets(known)
        facts = self._facts(shard, wanted)
        since = set(rollback_plan.targets([each for each in revisions if each not in known]))
        if shown is not None:  # those that are not published yet
            since |= {loc for loc, fact in facts.items() if shown.at_ms < fact.stamp_ms <= now_ms}
        found = rollback_plan.plan(wanted, facts, shard.section, self._urls(shard), now_ms, since)
        return found._replace(shown=ShownPlan(revisions[0].at, now_ms))

    def execute(self, shard: Shard, to: str, plan: RollbackPlan) -> ActionOutcome:
        """Accept the events of `plan`; they are published like all others.

        Raises InvalidError if the site accepts none of them; StoreError if it stops accepting them.
        """
        ids: list[str] = []
        events = plan.events
        for at in range(0, len(events), _STEP):
            taken = self._inbox.accept(events[at : at + _STEP])
            if taken.status != "accepted":
                if not ids:
                    line = command("queue", "resume", INTAKE, site=self._name)
                    detail = f"the intake is closed; run first: {line}"
                    raise InvalidError(Fault(INTAKE, taken.status, detail))
                raise StoreError(f"{len(ids)} of {len(events)} events accepted: roll back again")
            ids += taken.ids
        file = self._files.name(shard)
        line = command("files", "rollback", file, "--to", to, site=self._name)
        return ActionOutcome("files rollback", self._name, file, summary(plan), line, len(ids), ids)

    def _facts(self, shard: Shard, wanted: Mapping[str, bytes | None]) -> dict[str, PageFact]:
        keys = [*wanted, *(NEWS + loc for loc in wanted)]
        pages = {key: page for key, page in self._pages(keys).items() if page}
        current = self._lookup.current(pages)
        here = {
            loc for loc in wanted
            if loc in pages and pages[loc].live and self._lookup.shard_of(pages[loc]) == shard
        }  # fmt: skip
        grouped = self._grouped(wanted, pages)
        lost = {loc: pages.get(loc) for loc, line in wanted.items() if line and loc not in here}
        owners = self._owners(lost)
        claims = self._claims(owners.values())
        titles = self._lookup.feed(wanted)
        stands = self._urls(shard) > 0  # else pages return to another file
        facts = {}
        for loc, line in wanted.items():
            page, owner = pages.get(loc), owners.get(loc)
            listed_as_news = pages.get(NEWS + loc)
            news = current.get(NEWS + loc) if listed_as_news and listed_as_news.live else None
            live = page is not None and page.live
            item = titles.get(loc)
            there = claims.get(owner, "") if owner else ""
            moved = there not in {"", loc} and not _leaves(there, wanted)
            facts[loc] = PageFact(
                # A page that is being published is listed, whatever its line is.
                line=current.get(loc, b"") if loc in here else None,
                elsewhere=(live and loc not in here) or (line is not None and moved),
                grouped=loc in grouped,
                stamp_ms=page.stamp >> 16 if page else 0,
                returns=bool(page and stands and self._lookup.shard_of(page) == shard),
                owner=owner,
                anonymous=bool(page and not live and page.owner and owner is None),
                news=parse(news).news if news else None,
                title=item.title if item else "",
            )
        return facts

    def _urls(self, shard: Shard) -> int:
        """Return the number of pages that the shard lists."""
        state = self._state.shards([shard.section]).get(shard)
        return state.urls if state else 0

    def _pages(self, keys: Iterable[str]) -> dict[str, PageRecord | None]:
        return unpacked(self._lookup.records(list(keys))[0])

    def _grouped(
        self, wanted: Mapping[str, bytes | None], pages: Mapping[str, PageRecord]
    ) -> set[str]:
        """Return the pages in a translation group, and those that would link to pages in one."""
        found = {loc for loc in wanted if loc in pages and pages[loc].group}
        named = rollback_plan.linked(wanted)
        others = self._pages({href for hrefs in named.values() for href in hrefs})
        in_groups = {loc for loc, page in others.items() if page and page.group}
        return found | {loc for loc, hrefs in named.items() if hrefs & in_groups}

    def _owners(self, lost: Mapping[str, PageRecord | None]) -> dict[str, PageOwner]:
        """Return the ids of pages that are no longer listed, as far as their events are kept."""
        if not lost:
            return {}
        said: dict[str, dict[PageOwner, None]] = {}  # newest first
        for past in self._history.latest():
            event = members(past.payload) if past.payload else {}
            if event.get("loc") in lost and event.get("id") is not None:
                said.setdefault(event["loc"], {})[_owner(event)] = None
        claims = self._claims(owner for of in said.values() for owner in of)
        found = {}
        for loc, of in said.items():
            page = lost[loc]
            left = page.owner if page else b""
            # A delete by URL leaves the claim of the page's id unchanged; a delete by id after that
            # leaves no trace but its event.
            known = [owner for owner in of if self._digest(owner) == left or claims[owner] == loc]
            known += [] if left else [owner for owner in of if not claims[owner]]
            if known:
                found[loc] = known[0]
        return found

    def _claims(self, owners: Iterable[PageOwner]) -> dict[PageOwner, str]:
        """Return the current loc of each id; empty where it was deleted."""
        digests = {owner: self._digest(owner) for owner in owners}
        stored = self._lookup.records([], list(dict.fromkeys(digests.values())))[1]
        return {
            owner: Claim.unpack(stored[digest]).loc if stored[digest] else ""
            for owner, digest in digests.items()
        }

    def _digest(self, owner: PageOwner) -> bytes:
        self._lookup.sections.names()
        former = self._lookup.sections.former_owners
        return owner_of(owner.source, owner.kind, owner.id, owner.locale, former=former)


def summary(plan: RollbackPlan) -> str:
    """Return a sentence that summarizes the plan."""
    said = [
        f"{counted(len(plan.back), 'page')} back", f"{len(plan.changed)} changed",
        f"{len(plan.gone)} gone",
    ]  # fmt: skip
    skipped = len(plan.left.get(SINCE, ()))
    if left := sum(map(len, plan.left.values())) - skipped:
        said.append(f"{left} left as they are")
    if skipped:
        said.append(f"{skipped} skipped, changed since the plan was shown")
    return ", ".join(said)


def _leaves(loc: str, wanted: Mapping[str, bytes | None]) -> bool:
    """Return True if the same rollback deletes the page at `loc`."""
    return loc in wanted and wanted[loc] is None


def _owner(event: Mapping[str, Any]) -> PageOwner:
    names = {"source": NATIVE, "kind": "", "locale": ""}
    values = {name: str(event.get(name, default)) for name, default in names.items()}
    return PageOwner(id=str(event["id"]), **values)
