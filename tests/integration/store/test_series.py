"""Five versions of one real sitemap, replayed as the events that lead from each to the next."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
import redis

from tests.integration import independent
from tests.integration.independent import Page, Published
from tests.integration.pipeline import Pipeline

VERSIONS = tuple(f"series-aps-{n}.xml" for n in range(1, 6))


def pages_of(path: Path) -> tuple[str, dict[str, Page]]:
    """The site's origin, and what must be listed of this version."""
    raws = independent.raw_pages(path, well_formed=True)
    origin = independent.likely_origin(raws)
    return origin, independent.judge(path.name, raws, origin, datetime.now(UTC)).pages


def upsert(page: Page) -> dict[str, object]:
    said = {name: getattr(page, name) for name in ("loc", "lastmod", "changefreq")}
    said["priority"] = None if page.priority is None else str(page.priority)
    return {"type": "upsert", **{name: value for name, value in said.items() if value is not None}}


def difference(old: dict[str, Page], new: dict[str, Page]) -> list[dict[str, object]]:
    changed = [upsert(page) for loc, page in new.items() if old.get(loc) != page]
    gone: list[dict[str, object]] = [
        {"type": "delete", "loc": loc} for loc in old if loc not in new
    ]
    return changed + gone


def listing(published: Published, locs: set[str]) -> set[str]:
    """The names of the shard files that list any of `locs`."""
    return {
        url.rpartition("/")[2]
        for url, pages in published.pages.items()
        if locs & {page.loc for page in pages}
    }


@pytest.fixture
def site(corpus: Path, store: redis.Redis, tmp_path: Path) -> Pipeline:
    """The first version, in files of 10 pages."""
    origin, _ = pages_of(corpus / VERSIONS[0])
    site = Pipeline(store, tmp_path / "public", origin, shard_urls=10)
    site.bring(str(corpus / VERSIONS[0]))
    return site


def test_each_version_rewrites_only_the_files_that_list_a_page_which_differs(
    site: Pipeline, corpus: Path
) -> None:
    origin, old = pages_of(corpus / VERSIONS[0])
    assert old == Published(site.root, origin).all()
    for version in VERSIONS[1:]:
        _, new = pages_of(corpus / version)
        before, sums = Published(site.root, origin), site.sums()

        site.send(difference(old, new))

        after = Published(site.root, origin)
        differing = {loc for loc in old.keys() | new.keys() if old.get(loc) != new.get(loc)}
        expected = listing(before, differing) | listing(after, differing) | {"sitemap.xml"}
        rewritten = {name for name, of in site.sums().items() if sums.get(name) != of}
        gone = sums.keys() - site.sums().keys()
        assert new == after.all()
        assert expected - gone == rewritten
        assert gone <= expected
        unmoved = len(after.shards) + 1 - len(rewritten)
        print(f"\n{version}: {len(differing)} pages differ, {len(rewritten)} files rewritten, "
              f"{unmoved} left alone")  # fmt: skip
        old = new
    assert pages_of(corpus / VERSIONS[-1])[1] == old


def test_a_version_restores_what_the_one_before_lost(site: Pipeline, corpus: Path) -> None:
    """The second version is a partial crawl: 58 pages vanish and return with the third."""
    origin, first = pages_of(corpus / VERSIONS[0])
    _, second = pages_of(corpus / VERSIONS[1])

    site.send(difference(first, second))
    partial = Published(site.root, origin).all()
    site.send(difference(second, first))

    assert len(first.keys() - partial.keys()) == 58
    assert first == Published(site.root, origin).all()


def test_the_same_version_as_events_touches_no_file(site: Pipeline, corpus: Path) -> None:
    _, pages = pages_of(corpus / VERSIONS[0])
    sums, times = site.sums(), site.times()

    site.send(upsert(page) for page in pages.values())

    assert (sums, times) == (site.sums(), site.times())
