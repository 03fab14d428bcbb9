"""Empty the shards that have become nearly empty, a few an hour, so that files stay few.

Pages never move otherwise, and the numbers of shards are never used again.
"""

from __future__ import annotations

from shared.errors import ShardError, StoreError
from shared.sitemap import blocks
from shared.sitemap.shards import Shard
from shared.store.pages.page_repository import PageRepository
from shared.store.publishing.publish_state import PublishState


def drain_emptiest(pages: PageRepository, state: PublishState) -> Shard | None:
    """Move the pages of the emptiest shard under a quarter to the tail of its section.

    The shard, which leaves index and disk when that is published; None if there is no such.
    Pages with a change that waits to be published stay until the next time. So does a shard that
    the shrink guard holds: its file would go on to list what has moved. One that is damaged is
    passed over; ShardError if that leaves none.
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
            (taken,), _ = state.load([emptiest], [every[emptiest]])
            listed = [blocks.split(block.raw()) for _, block in sorted(taken.blocks.items())]
        except StoreError:
            raise
        except Exception as error:  # noqa: BLE001  # whatever is stored there
            damaged = damaged or ShardError(f"{emptiest} is damaged: {error}")
            continue
        for some in listed:
            pages.move(emptiest, some)
        return emptiest
    if damaged is not None:
        raise damaged
    return None
