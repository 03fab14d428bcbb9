"""llms.txt of a site: the newest pages whose events state a title, by section."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import redis

from shared.config.sites.site import Site
from shared.domain.page_record import PageRecord
from shared.domain.routing import family_of
from shared.sitemap import feed_writer, llms_writer
from shared.sitemap.llms_writer import TitledPage
from shared.sitemap.shards import LLMS, Shard
from shared.store.pages.lookup import PageLookup
from shared.store.publishing.publish_state import PublishState
from worker.publishing.outputs.output import Output
from worker.publishing.shard_file import MergedShard


class LlmsFile(Output):
    """The llms.txt of one site, made of the items that feeds are made of."""

    names = (LLMS,)
    careful = True

    def __init__(self, client: redis.Redis, name: str, site: Site) -> None:
        self._site, self._state = site, PublishState(client, name)
        self._lookup = PageLookup.of(client, name, site)

    def record(self, published: Sequence[MergedShard]) -> None:
        """Do nothing: items are stored when events are applied."""

    def contents(self, shards: Collection[Shard] | None = None) -> Iterable[tuple[str, bytes]]:  # noqa: ARG002
        """Return the file; none while no listed page has a title."""
        titled = {loc: item for loc, item in self._state.feed().items() if item.title}
        newest = feed_writer.newest(titled, self._site.outputs.llms_entries)
        stored = self._lookup.records([loc for loc, _ in newest])[0] if newest else {}
        sections: dict[str, list[TitledPage]] = {}
        for loc, item in newest:
            if section := self._section(stored[loc]):
                page = TitledPage(loc, item.title, item.description)
                sections.setdefault(section, []).append(page)
        if not sections:
            return ()
        ordered = {name: sections[name] for name in sorted(sections)}
        summary = self._site.outputs.llms_summary
        return ((LLMS, llms_writer.render(self._site.feed_title, summary, ordered)),)

    def _section(self, record: bytes) -> str:
        """Return the configured section of a page; empty if it is not listed."""
        page = PageRecord.unpack(record) if record else None
        if page is None or not page.live or page.place is None:
            return ""
        number = page.place.section
        return family_of(self._lookup.sections.names([number])[number], self._site.limits)

    def is_ours(self, content: bytes) -> bool:
        """Return True if `content` was made here: others write llms.txt by hand."""
        return llms_writer.is_ours(content)

    def forget(self) -> None:
        """Do nothing: feeds may need the items, and forget them."""
