"""Steps of events from their decision to the files, as `--watch` and `connect --wait` show them."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from deploy.cli.output import CommandTarget
from shared.admin.site_status import Inspector
from shared.errors import StoreError
from shared.store.client import answering
from shared.store.keys import keys_of
from shared.store.operations import event_log
from shared.store.publishing.quarantine import Quarantine

if TYPE_CHECKING:
    import redis

WATCH_S = 30.0


def since(started: float) -> float:
    """Return the milliseconds since `started`, a value of time.perf_counter."""
    return round((time.perf_counter() - started) * 1000, 1)


class EventWatch:
    """Follows events through the event log."""

    def __init__(self, place: CommandTarget) -> None:
        self._client: redis.Redis = place.client()
        self._inspector = Inspector(self._client, place.name, place.site)
        self._recent = keys_of(place.name).recent
        self._name, self._quarantine = place.name, Quarantine(self._client, place.name)
        with answering():
            last: Any = self._client.xrevrange(self._recent, count=1)
        self._after = last[0][0] if last else b"0"

    def steps(self, ids: list[str], started: float) -> Iterator[dict[str, Any]]:
        """Yield the steps of the events with these ids.

        `started` is a value of time.perf_counter. Raises StoreError after WATCH_S seconds without a
        result.
        """
        undecided, unpublished = set(ids), set[str]()
        deadline = time.monotonic() + WATCH_S
        while undecided or unpublished:
            if time.monotonic() > deadline:
                waits = "decided" if undecided else "published"
                raise StoreError(f"not {waits} within {WATCH_S:.0f} s: is a worker running?")
            news = self._news()
            for step in self._in_the_way(unpublished if not news and not undecided else set()):
                yield step | {"ms": since(started)}
            for fields in news:
                if b"decided" in fields:
                    for ident, subject, reason, changed in event_log.unpack(fields[b"decided"])[0]:
                        if ident not in undecided:
                            continue
                        undecided.discard(ident)
                        yield {
                            "step": "decided", "what": f"{subject}: {reason}",
                            "ms": since(started),
                        }  # fmt: skip
                        if changed:
                            unpublished |= self._shard(subject)
                    continue
                for step in self._published(json.loads(fields[b"published"]), unpublished):
                    yield step | {"ms": since(started)}

    def _published(self, note: dict[str, Any], unpublished: set[str]) -> Iterator[dict[str, Any]]:
        """Yield what a publish did with `unpublished` files, and remove those from the set."""
        if held := unpublished & set(note.get("held", ())):
            unpublished -= held
            what = (
                f"{', '.join(sorted(held))}: the shrink guard holds this file, new pages and edits "
                f"with it, until: sitemapd confirm --site {self._name}"
            )
            yield {"step": "held", "what": what}
        if unpublished & set(note["shards"]):
            unpublished -= set(note["shards"])
            files = note["written"] + [f"{name} (removed)" for name in note["removed"]]
            yield {"step": "published", "what": ", ".join(files)}

    def _in_the_way(self, unpublished: set[str]) -> Iterator[dict[str, Any]]:
        """Yield the causes that block `unpublished` files, and remove those from the set."""
        if not unpublished:
            return
        stopped, single = self._quarantine.read()
        if stopped is not None:
            unpublished.clear()
            what = f"nothing is published: {stopped.reason}; {stopped.todo}"
            yield {"step": "stopped", "what": what}
        for shard, cause in single.items():
            if str(shard) in unpublished:
                unpublished.discard(str(shard))
                yield {"step": "set aside", "what": f"{shard}: {cause.reason}; {cause.todo}"}

    def _news(self) -> list[dict[bytes, bytes]]:
        with answering():
            reply: Any = self._client.xread({self._recent: self._after}, block=1000)
        entries = reply[0][1] if reply else []
        if entries:
            self._after = entries[-1][0]
        known = {b"decided", b"published"}  # without ignored deliveries of a CMS
        return [fields for _, fields in entries if known & fields.keys()]

    def _shard(self, subject: str) -> set[str]:
        page = self._inspector.page(subject)
        shard = self._inspector.shard_of(page) if page else None
        return {str(shard)} if shard else set()
