"""sitemap-hosts.xml: one index of the files of a site and of other sites of this installation.

A site on another host is listed while the robots.txt of its host names the index (PROTOCOL R11);
worker/publishing/upkeep/cross_submitter.py looks, and has the file written when one of them
publishes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import islice

import redis

from shared.config.sites.site import Site
from shared.sitemap import fragments
from shared.sitemap.shards import HOSTS, MAX_BYTES, MAX_INDEX, Shard
from shared.store.publishing.cross_submission import CrossSubmission
from shared.store.publishing.publish_work import PublishedShard
from shared.telemetry.logs import logger
from worker.publishing.outputs.output import Output
from worker.publishing.shard_file import MergedShard

_AROUND = 500
"""More than the bytes of the tags around the lines."""

_log = logger("publisher")


class HostsIndex(Output):
    """The index of several hosts that one site publishes."""

    names = (HOSTS,)

    def __init__(self, client: redis.Redis, name: str, site: Site) -> None:
        self._name, self._site = name, site
        self._submission = CrossSubmission(client, name)
        self._own: Sequence[PublishedShard] = ()

    def record(self, published: Sequence[MergedShard]) -> None:
        """Do nothing: the lines are those of each site's own index."""

    def index(self, done: Sequence[PublishedShard]) -> None:
        """Keep the lines of `done` for `contents`."""
        self._own = done

    def contents(self, shards: Collection[Shard] | None = None) -> Iterable[tuple[str, bytes]]:  # noqa: ARG002
        """Return the file; none while no site has published anything."""
        records = self._submission.records()
        pages = {self._name: self._site.index_shards} | {
            name: records[name].index_shards
            for name in self._site.outputs.hosts
            if name in records and records[name].named and name != self._name
        }
        own, self._own = {each.taken.state.ordinal: _line(each) for each in self._own}, ()
        found = self._submission.lines(pages, {self._name: own})
        listed = [*islice(_within(found, MAX_BYTES), MAX_INDEX)]
        if len(listed) < len(found):
            _log.error("index of hosts full", site=self._name, unlisted=len(found) - len(listed))
        if not listed:
            return ()
        return ((HOSTS, fragments.render_index(listed, styled=self._site.viewer)),)

    def is_ours(self, content: bytes) -> bool:
        """Return True if `content` is an index as it is made here: others write files of this name,
        too, which stay while it is off.
        """
        return fragments.is_our_index(content)

    def forget(self) -> None:
        """Delete what is known of the other sites."""
        self._submission.forget()


def _line(each: PublishedShard) -> bytes:
    return each.line if each.file else b""


def _within(lines: Iterable[bytes], most: int) -> Iterable[bytes]:
    """Yield `lines` up to `most` bytes, with those of the tags around them."""
    left = most - _AROUND
    for line in lines:
        left -= len(line)
        if left < 0:
            return
        yield line
