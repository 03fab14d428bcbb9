"""Timeline of one event from its arrival to the file: steps, times, and changed lines."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

import redis

from shared.admin.dead_letters import subject as subject_of
from shared.admin.outcomes import is_id
from shared.admin.queues import members
from shared.admin.site_status import Inspector
from shared.config.sites.site import Site
from shared.errors import Fault, InvalidError, UrlError
from shared.sitemap import shards, urls
from shared.sitemap.shards import Shard
from shared.store.client import answering
from shared.store.keys import keys_of
from shared.store.operations.dead_letters import DeadLetter, DeadLetters
from shared.store.operations.event_log import REFUSED, EventLog, LoggedEvent
from shared.store.operations.queues import EVENTS, NOTIFY, PUBLISH, QueuedEvent, Queues
from shared.store.publishing.revisions import ChangedLine, Revision, Revisions

_REQUEST = re.compile(r"[0-9a-f]{16}", re.ASCII)
_LOOKED_AT = 5_000
"""Number of newest events searched for one about a page."""
_REVISIONS = 2_000


class Step(NamedTuple):
    """One step: when (ms since 1970; None: it lasts), and how long after arrival (ms)."""

    step: str
    what: str
    at_ms: int | None
    after_ms: int | None


class Timeline(NamedTuple):
    """Timeline of one event, or of one request that was rejected.

    `state` is waiting, in flight, applied (not published yet), held, published, unchanged, dead,
    refused, or unknown. `lines` are those of its page that its publish changed. `letter` is the id
    of its dead letter.
    """

    ident: str
    subject: str
    state: str
    event: Mapping[str, Any]
    payload: bytes
    steps: Sequence[Step]
    lines: Sequence[ChangedLine] = ()
    letter: str = ""


class Timelines:
    """Timelines of the events of one site."""

    def __init__(self, client: redis.Redis, name: str, site: Site) -> None:
        self._client, self._site, self._keys = client, site, keys_of(name)
        self._queues, self._dead = Queues(client, name), DeadLetters(client, name)
        self._history, self._revisions = EventLog(client, name), Revisions(client, name)
        self._inspector = Inspector(client, name, site)

    def show(self, asked: str) -> Timeline:
        """Return the timeline of the event with this id; of the request rejected under this id; or
        of the last event about this URL. Raises InvalidError if none is kept.
        """
        if is_id(asked):
            return self.event(asked)
        if _REQUEST.fullmatch(asked):
            return self._refused(asked)
        idents = self.about(asked)
        if not idents:
            raise InvalidError(Fault(asked, "event", "no event about this page is kept"))
        return self.event(idents[0])

    def about(self, url: str) -> list[str]:
        """Return the ids of events about the page `url`, newest first, as far as they are kept.

        Raises InvalidError if it cannot be a page of this site.
        """
        try:
            loc = urls.canonical(url, self._site.base)
        except UrlError as error:
            raise InvalidError(Fault(url, f"PROTOCOL {error.rule}", error.detail)) from None
        waiting = self._queues.newest(_LOOKED_AT)
        found = [each.id for each in waiting if subject_of(each.payload) == loc]
        decided = self._history.decisions(_LOOKED_AT)
        found += [past.event for past in decided if past.subject == loc and past.event]
        found += [each.event for each in self._dead.letters() if subject_of(each.payload) == loc]
        return sorted(set(found), key=_order, reverse=True)

    def event(self, ident: str) -> Timeline:
        """Return the timeline of the event with this id."""
        accepted = Step("accepted", "", int(ident.partition("-")[0]), 0)
        if (queued := self._queues.find(ident)) is not None:
            return self._made(ident, queued.received.payload, accepted, *self._waits(queued))
        if pasts := self._history.of_event(ident):
            return self._decided(ident, accepted, pasts)
        if (letter := self._dead.of_event(ident)) is not None:
            return self._buried(ident, accepted, letter)
        what = "decided too long ago to be kept, removed by a purge, or never accepted here"
        return Timeline(ident, "", "unknown", {}, b"", [Step("unknown", what, None, None)])

    def change(self, loc: str) -> Timeline | None:
        """Return the timeline of the last change of the page `loc`; of its last event if nothing
        changed it; None if no decision about it is kept.

        What changed without an event follows the event that waited for it, if one did.
        """
        pasts = [past for past in self._history.decisions(_LOOKED_AT) if past.subject == loc]
        changed = next((past for past in pasts if past.changed), None)
        events = [past for past in pasts if past.event]
        if changed is not None and changed.event:
            return self.event(changed.event)
        if changed is None:
            return self.event(events[0].event) if events else None
        waited = next(iter(pasts[pasts.index(changed) + 1 :]), None)
        return self._by_itself(loc, changed, waited if waited and waited.event else None)

    def _by_itself(self, loc: str, past: LoggedEvent, waited: LoggedEvent | None) -> Timeline:
        """Return the timeline of a decision without an event: by time, by a look, by another site.

        `waited` is the decision before it, if that was about an event.
        """
        decided = Step("decided", past.reason, past.at_ms, 0)
        state, found, lines = self._published(loc, past.at_ms, decided)
        steps, event = [decided, *found, *self._told(loc, past.at_ms, decided)], dict[str, Any]()
        ident = waited.event if waited and not waited.changed else ""
        if ident and waited:
            before, event = self.event(ident), members(waited.payload)
            steps = [*before.steps, *steps]
        return Timeline(ident, loc, state, event, b"", steps, lines)

    def _made(
        self, ident: str, payload: bytes, accepted: Step, state: str, *steps: Step
    ) -> Timeline:
        return Timeline(
            ident, subject_of(payload), state, members(payload), payload, [accepted, *steps]
        )

    def _waits(self, queued: QueuedEvent) -> Iterator[Any]:
        """Yield its state, and the step that lasts."""
        paused = self._queues.paused().get(EVENTS)
        if queued.consumer:
            failed = f", failed {queued.tries - 1} times before" if queued.tries > 1 else ""
            what = f"with {queued.consumer} for {queued.idle_ms} ms{failed}"
            yield "in flight"
            yield Step("in flight", what, None, None)
            return
        yield "waiting"
        what = f"events are paused by {paused.by}" if paused else "no worker has read it yet"
        yield Step("waiting", what, None, None)

    def _buried(self, ident: str, accepted: Step, letter: DeadLetter) -> Timeline:
        what = f"{letter.error} (tried {letter.tries} times); kept as {letter.id}"
        step = _step("dead", what, letter.since_ms, accepted)
        made = self._made(ident, letter.payload, accepted, "dead", step)
        return made._replace(letter=letter.id)

    def _decided(self, ident: str, accepted: Step, pasts: Sequence[LoggedEvent]) -> Timeline:
        last = pasts[-1]
        steps = [accepted, *(_step("decided", past.reason, past.at_ms, accepted) for past in pasts)]
        state, lines = "unchanged", tuple[ChangedLine, ...]()
        loc = members(last.payload).get("loc") or last.subject
        if last.changed:
            state, found, lines = self._published(str(loc), last.at_ms, accepted)
            steps += found
            steps += self._told(str(loc), last.at_ms, accepted)
        event = members(last.payload)
        return Timeline(ident, last.subject, state, event, last.payload, steps, lines)

    def _published(
        self, loc: str, since_ms: int, accepted: Step
    ) -> tuple[str, list[Step], tuple[ChangedLine, ...]]:
        page = self._inspector.page(loc)
        shard = self._inspector.shard_of(page) if page else None
        revision = self._revision(loc, shard, since_ms)
        if revision is not None:
            file = self._file(revision.shard)
            applied = _step("applied", str(revision.shard), since_ms, accepted)
            written = file if revision.file else f"{file} (removed)"
            step = _step("published", written, revision.at_ms, accepted)
            return "published", [applied, step], _lines_of(revision, loc)
        if shard is None:
            what = "the page of this id, and so its file, is not kept"
            state = "applied" if self._queues.waiting().files else "published"
            return state, [Step("applied", what, since_ms, None)], ()
        applied = _step("applied", str(shard), since_ms, accepted)
        state, what = self._unpublished(shard, since_ms)
        return state, [applied, Step(state, what, None, None)], ()

    def _revision(self, loc: str, shard: Shard | None, since_ms: int) -> Revision | None:
        """Return the publish of a change of the page `loc`, which is in `shard` now: the first of
        its line, or of that file if its lines were too many to keep.
        """
        for revision in islice(self._revisions.since(since_ms), _REVISIONS):
            if revision.lines is None and revision.shard == shard:
                return revision
            if any(line.loc == loc for line in revision.lines or ()):
                return revision
        return None

    def _unpublished(self, shard: Shard, since_ms: int) -> tuple[str, str]:
        """Return state and explanation of a change without a known publish."""
        file, oldest = self._file(shard), next(self._revisions.since(), None)
        with answering():
            pipe = self._client.pipeline(transaction=False)
            pipe.hexists(self._keys.held, str(shard))
            pipe.zscore(self._keys.dirty, str(shard))
            held, dirty = pipe.execute()
        if held:
            return "held", f"the shrink guard holds {file}: see sitemapd status"
        if dirty is not None:
            paused = self._queues.paused().get(PUBLISH)
            return "applied", f"publishing is paused by {paused.by}" if paused else f"{file} waits"
        if oldest is None or oldest.at_ms > since_ms:
            return "published", f"{file}; its lines are no longer kept"
        return "unchanged", f"{file} stayed as it was: a later event changed it back before"

    def _told(self, loc: str, since_ms: int, accepted: Step) -> Iterator[Step]:
        """Yield the steps of its notifications; their times are kept for a while only."""
        engines = tuple(self._site.notify.engines)
        paused = self._queues.paused().get(NOTIFY) if engines else None
        for engine in engines:
            queue, told = self._keys.notify(engine), self._keys.notified(engine)
            with answering():
                pipe = self._client.pipeline(transaction=False)
                for key in (queue, self._keys.sending(engine)):
                    pipe.zscore(key, loc)
                for member in (loc, ""):  # empty: the site as a whole
                    pipe.zscore(told, member)
                waits, sending, *times = pipe.execute()
            if waits is not None:
                why = f"; notifications are paused by {paused.by}" if paused else ""
                yield Step("to be told", f"{engine}{why}", None, None)
            elif sending is not None:
                yield Step("being told", engine, None, None)
            elif at := max((int(at) for at in times if at and at >= since_ms), default=0):
                yield _step("told", engine, at, accepted)

    def _refused(self, request: str) -> Timeline:
        for past in self._history.latest():
            if past.kind == REFUSED and past.said.get("request") == request:
                said = past.said
                what = f"{said.get('status')} {said.get('code')}: {past.reason}"
                faults = [
                    f"{f['field']}: {f['detail']} ({f['rule']})" for f in said.get("faults", ())
                ]
                steps = [Step("refused", "; ".join((what, *faults)), past.at_ms, 0)]
                return Timeline(request, "", "refused", said, b"", steps)
        raise InvalidError(Fault(request, "event", "no refusal of this request is kept"))

    def _file(self, shard: Shard) -> str:
        return shards.file_name(shard, self._site.form)


def _lines_of(revision: Revision, loc: str) -> tuple[ChangedLine, ...]:
    return tuple(line for line in revision.lines or () if line.loc == loc)


def _step(name: str, what: str, at_ms: int, accepted: Step) -> Step:
    assert accepted.at_ms is not None
    return Step(name, what, at_ms, max(0, at_ms - accepted.at_ms))


def _order(ident: str) -> tuple[int, int]:
    ms, _, number = ident.partition("-")
    return int(ms), int(number)
