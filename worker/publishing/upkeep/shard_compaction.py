"""Empty nearly empty shards, a few per hour, so that there are few files.

Pages never move otherwise, and shard numbers are never reused.
"""

from __future__ import annotations

from shared.errors import ShardError, StoreError
from shared.sitemap import blocks
from shared.sitemap.shards import Shard
from shared.store.pages.page_repository import PageRepository
from shared.store.publishing.publish_state import PublishState


def drain_emptiest(pages: PageRepository, state: PublishState) -> Shard | None:
    """Move the pages of the emptiest shard under a quarter to the tail of its section.

    Returns the shard, which leaves index and disk when that is published; None if there is none.
    Pages with a waiting patch stay until the next time, as does a shard of a shrink hold: its file
    would still list the moved pages. A damaged shard is passed over; ShardError if none other is
    left. Raises StoreError.
    """
    every = state.shards(sorted(pages.sections.numbers()))
    tails = {shard.section: shard.number for shard in every}
    held = state.shrink.held()
    candidates = [
        shard
        for shard, counted in every.items()
        if shard.number < tails[shard.section]
        and pages.limits_of(shard.section).nearly_empty(counted)
        and shard not in held
        and not pages.limits_of(shard.section).reuse
    ]
    damaged: Exception | None = None
    for emptiest in sorted(candidates, key=lambda shard: every[shard].urls):
        try:
            listed = [blocks.split(block.raw()) for block in state.content(emptiest).values()]
        except StoreError:
            raise
        except Exception as error:  # noqa: BLE001  # any error of the stored bytes
            damaged = damaged or ShardError(f"{emptiest} is damaged: {error}")
            continue
        for some in listed:
            pages.move(emptiest, some)
        return emptiest
    if damaged is not None:
        raise damaged
    return None
