"""Look at every news entry again, whatever is known of when it leaves (PROTOCOL W4).

News leaves by the clock, and the times are kept beside the entries; this is for the day on which
they are not: after a restore, or by a fault.
"""

from __future__ import annotations

from shared import blocks, fragments
from shared.extensions import news
from shared.known import NEWS
from shared.store.pages import Pages
from shared.store.publishing import Publishing


def refresh(pages: Pages, state: Publishing) -> int:
    """Enter the hour of every published news entry again; how many there are."""
    seen = 0
    sections = [name for name in pages.sections.numbers() if pages.limits_of(name).reuse]
    for shard, counted in state.shards(sections).items():
        (taken,), _ = state.load([shard], [counted])
        due = {}
        for block in taken.blocks.values():
            for fragment in blocks.split(block.raw()):
                entry = fragments.parse(fragment)
                if entry.news is not None:
                    due[NEWS + entry.loc] = news.leaves_ms(entry.news)
        pages.expect(due)
        seen += len(due)
    return seen
