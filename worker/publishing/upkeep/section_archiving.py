"""Move pages to the archive of their section by the age of their lastmod, though no event comes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from shared.domain.archive_rules import ArchiveRule
from shared.domain.routing import Routing, family_of
from shared.errors import ShardError, StoreError
from shared.sitemap import blocks
from shared.sitemap.shards import Shard
from shared.store.pages.page_repository import PageRepository
from shared.store.publishing.publish_state import PublishState

_LASTMOD = re.compile(rb"<lastmod>([^<]*)</lastmod>")
_NEVER = 1 << 62


class SectionArchiver:
    """Archives the pages of one site.

    A shard is read when its first page is due, and after it was published anew: of a site in which
    nothing happens, no content is read.
    """

    def __init__(self, pages: PageRepository, state: PublishState, routing: Routing) -> None:
        self._pages, self._state = pages, state
        self._rules = {
            of: (archive, rule)
            for of, (archive, rule) in routing.archives.items()
            if rule.after_days
        }
        self._due: dict[Shard, tuple[int, int]] = {}
        """Generation and time (ms since 1970) of the first page that is due, by shard."""

    def run(self, now_ms: int, seen_one: Callable[[], None] = lambda: None) -> int:
        """Move the pages that are due at `now_ms` (since 1970); return their number.

        `seen_one` is called after each shard. Pages with a waiting patch stay until the next time,
        as do shards of a shrink hold. A damaged shard is passed over, and raises ShardError after
        the others. Raises StoreError.
        """
        moved, damaged = 0, None
        for shard, generation, archive, rule in self._shards() if self._rules else ():
            try:
                moved += self._archive(shard, generation, archive, rule, now_ms)
            except StoreError:
                raise
            except Exception as error:  # noqa: BLE001  # any error of the stored bytes
                damaged = damaged or ShardError(f"{shard} is damaged: {error}")
            seen_one()
        if damaged is not None:
            raise damaged
        return moved

    def _shards(self) -> Iterator[tuple[Shard, int, str, ArchiveRule]]:
        """Yield the published shards with a rule, the generation of each, and the archive."""
        of = {name: family_of(name, self._rules) for name in self._pages.sections.numbers()}
        files = self._state.files(sorted(name for name in of if of[name] in self._rules))
        held = self._state.shrink.held()
        for shard, file in files.items():
            if shard not in held:
                yield shard, file.generation, *self._rules[of[shard.section]]

    def _archive(
        self, shard: Shard, generation: int, archive: str, rule: ArchiveRule, now_ms: int
    ) -> int:
        known, due = self._due.get(shard, (-1, 0))
        if known == generation and now_ms < due:
            return 0
        first, moved, left = _NEVER, 0, False
        for block in self._state.content(shard).values():
            old = []
            for fragment in blocks.split(block.raw()):
                found = _LASTMOD.search(fragment)
                at = rule.due_ms(found[1].decode()) if found else None
                if at is not None and at <= now_ms:
                    old.append(fragment)
                elif at is not None:
                    first = min(first, at)
            if old:
                count = self._pages.move(shard, old, archive)
                moved, left = moved + count, left or count < len(old)
        # Pages that could not be moved now are looked for again.
        self._due[shard] = generation, 0 if left else first
        return moved
