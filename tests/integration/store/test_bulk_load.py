"""The bulk loader of the benchmark leaves the state and the files of events applied one by one."""

from __future__ import annotations

from typing import Any

import pytest

from shared.sitemap.shards import Shard
from shared.store.publishing.publish_batch import PublishedFile
from shared.store.publishing.publish_state import PublishState
from tests.bench import bulk
from tests.bench.bed import Bed, bed, server
from tests.bench.corpus import Corpus
from tests.bench.memory import HISTORY, growing
from worker.checks.consistency.examination import Consistency
from worker.checks.verify import Verification

URLS, SHARD = 20_300, 4_000
_NOT_COMPARED = ("counters", "shape", "index:", "section:pages:files", *HISTORY)


def stored(site: Bed) -> dict[str, Any]:
    """All fields that do not depend on the time of a publish."""
    prefix, found = f"{{{site.name}}}:", dict[str, Any]()
    for key in site.client.scan_iter(f"{prefix}*", count=10_000):
        name = key.decode().removeprefix(prefix)
        if not name.startswith(_NOT_COMPARED):
            kind = site.client.type(key)
            assert kind == b"hash", f"{name} is a {kind!r}"
            found[name] = site.client.hgetall(key)
    return found


def files(site: Bed) -> dict[Shard, PublishedFile]:
    """The file records, without the times."""
    found = PublishState(site.client, site.name).files(["pages"])
    return {shard: file._replace(lastmod=0, peak_since=0) for shard, file in found.items()}


@pytest.mark.parametrize("urls", [URLS, 2 * SHARD, SHARD - 1])
def test_a_bulk_load_leaves_what_events_leave(urls: int) -> None:
    pages = list(Corpus().rows(urls))
    with (
        server() as client,
        bed(client, "one", shard_urls=SHARD) as one,
        bed(client, "two", shard_urls=SHARD) as two,
    ):
        one.load([bulk.event(page) for page in pages])
        bulk.load(two, pages, urls)

        assert stored(one) == stored(two)
        assert files(one) == files(two)
        for name in ("shards", "urls", "sections"):
            counted = [client.hget(f"{{{each.name}}}:counters", name) for each in (one, two)]
            assert counted[0] == counted[1]
        for path in one.site.web_root.glob("pages-*.xml"):
            assert path.read_bytes() == (two.site.web_root / path.name).read_bytes()
        assert {p.name for p in one.site.web_root.iterdir()} == {
            p.name for p in two.site.web_root.iterdir()
        }
        # Of few pages the allocator's rounding of 65,536 small hashes is much.
        assert abs(growing(one) / growing(two) - 1) < (0.02 if urls == URLS else 0.05)
        for each in (one, two):
            assert not list(Consistency(client, each.name, each.site).flaws())
            assert not list(Verification(client, each.name, each.site, "test").verify())


def test_the_rows_of_a_corpus_are_as_long_as_its_pages() -> None:
    rows, pages = list(Corpus().rows(20_000)), list(Corpus().pages(20_000))
    assert len({loc for loc, _ in rows}) == 20_000
    of_rows = sum(len(loc) for loc, _ in rows)
    assert abs(of_rows / sum(len(str(page.loc)) for page in pages) - 1) < 0.005
