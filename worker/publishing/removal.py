"""Removal of the published files of a site that was removed from the configuration."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import redis

from shared.config.filenames import MARKER, PAGE, STYLESHEET, index_name
from shared.config.sites.site import Site
from shared.sitemap import feed_writer, shards
from shared.store.publishing.file_shape import FileShapes
from shared.store.publishing.publish_state import PublishState
from worker.publishing.outputs.output_files import OutputFiles
from worker.publishing.shard_file import path_of
from worker.publishing.targets.ownership import belongs
from worker.publishing.targets.registry import open_own, stands


def remove_files(client: redis.Redis, name: str, site: Site) -> list[str]:
    """Remove the files that sitemapd wrote into the web root; return their names.

    Indexes go first, so that none names a file that is gone. robots.txt and files of others stay.
    No worker may work on the site. Raises StoreError, and PublishError if the files are of another
    state, or one cannot be removed.
    """
    if not stands(site):
        return []
    state = PublishState(client, name)
    with closing(open_own(site)) as root:
        belongs(root, state, name, site)
        removed = OutputFiles(client, name, site).remove(root)
        removed += [each for each in _names(client, name, site, state) if root.remove(each)]
        root.sync()
    return removed


def _names(client: redis.Redis, name: str, site: Site, state: PublishState) -> Iterator[str]:
    yield index_name(site, 0)
    for page in state.pages(site.index_shards):
        yield index_name(site, page)
    for shard in state.shards({*site.limits, *state.sections()}):
        for form in shards.FORMS:
            yield path_of(shard, form)
    yield from FileShapes(client, name).retired()
    if site.feed:
        yield from feed_writer.NAMES
    if site.viewer:
        yield from (STYLESHEET, PAGE)
    yield MARKER
