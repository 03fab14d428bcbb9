"""Check every news entry again, independent of its stored expiry time (PROTOCOL W4).

News expires by stored times; this check is for times that are missing, after a restore or a fault.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from shared.domain import expiry
from shared.domain.batch_state import NEWS
from shared.domain.deferral import AT, Deferral
from shared.errors import ShardError, StoreError
from shared.events.event import SchemaError
from shared.sitemap import blocks, fragments
from shared.sitemap.extensions import news
from shared.sitemap.shards import Shard
from shared.store.pages.expiry_schedule import ExpirySchedule
from shared.store.pages.page_repository import PageRepository
from shared.store.publishing.publish_state import PublishState


def refresh(
    pages: PageRepository, state: PublishState, schedule: ExpirySchedule,
    seen_one: Callable[[], None] = lambda: None,
) -> int:  # fmt: skip
    """Store the expiry time of every published news entry, and the time of each scheduled one;
    return the number of published ones.

    `seen_one` is called after each shard. A damaged shard does not stop the others: the first one
    raises ShardError after them. Raises StoreError.
    """
    seen, damaged = 0, None
    sections = [name for name in pages.sections.numbers() if pages.limits_of(name).reuse]
    for shard in state.shards(sections):
        try:
            due = _due(state, shard)
        except StoreError:
            raise
        except Exception as error:  # noqa: BLE001  # any error of the stored bytes
            damaged = damaged or ShardError(f"{shard} is damaged: {type(error).__name__}: {error}")
            continue
        schedule.set(due)
        seen += len(due)
        seen_one()
    for key, stored in pages.lookup.all_coming():
        if key.startswith(AT):
            with suppress(SchemaError):  # said when it is due
                schedule.set({key: Deferral.unpack(stored).due_ms})
            continue
        entry = expiry.scheduled(stored)
        if entry is not None and entry.news is not None:
            schedule.set({key: news.appears_ms(entry.news)})
    if damaged is not None:
        raise damaged
    return seen


def _due(state: PublishState, shard: Shard) -> dict[str, int]:
    """Return the expiry time of each news entry of a shard (ms since 1970)."""
    due = {}
    for block in state.content(shard).values():
        for fragment in blocks.split(block.raw()):
            entry = fragments.parse(fragment)
            if entry.news is not None:
                due[NEWS + entry.loc] = news.leaves_ms(entry.news)
    return due
