"""One event: how long until its files are visible and durable, and what it costs in all."""

from __future__ import annotations

import time
import zlib
from collections.abc import Sequence

from lxml import etree

from shared.config.sites.site import Site
from shared.events.event import Event
from shared.sitemap import blocks, fragments
from shared.sitemap.entry import Entry
from shared.sitemap.shards import Shard, ShardState
from shared.store.publishing.publish_work import ShardWork
from tests.bench.bed import Bare, Bed
from tests.bench.corpus import BASE, Corpus
from tests.bench.report import Report, compared
from tests.bench.scale import Scale
from worker.publishing.shard_file import ShardFiles, check


def one_event(bed: Bed, event: Event) -> tuple[float, float, list[tuple[str, bytes]]]:
    """Seconds from an event in the inbox to its files durable, and to the site at rest; the files.

    The clock starts where a worker is woken: accepting the event is not in it.
    """
    before = {path.name: path.stat().st_ino for path in bed.site.web_root.glob("*.xml*")}
    bed.pump.inbox.accept([event])
    began = time.perf_counter()
    bed.pump._publish_at = float("-inf")  # as on a site that was idle: no date lies ahead
    bed.pump.run()
    done = time.perf_counter()
    files = [
        (path.name, path.read_bytes())
        for path in bed.site.web_root.glob("*.xml*")
        if before.get(path.name) != path.stat().st_ino
    ]
    assert len(files) == 2, f"one event is one shard and one index, not {[n for n, _ in files]}"
    return bed.publisher.visible_at - began, done - began, files


def latency(
    report: Report, bed: Bed, pages: Sequence[Event], corpus: Corpus, scale: Scale, what: str
) -> None:
    """Event to visible, next to the bare write of the same bytes."""
    bare = Bare(bed.site.web_root)
    pairs = []
    for page in pages[: scale.rounds]:
        visible, _, files = one_event(bed, corpus.changed(page))
        pairs.append((visible * 1e3, bare.write(files) * 1e3))
    bound = 2.5 if (bed.site.shard_urls, bed.site.form) == (10_000, "xml") else None
    report.add(
        compared(
            f"event to visible, {what}", "ms", pairs[scale.warm :],
            "bare durable write of both files", at_most=bound,
        )
    )  # fmt: skip


def rerender(report: Report, corpus: Corpus, scale: Scale) -> None:
    """One changed URL in a full shard, next to rendering and deflating all of it."""
    entries = [fragments.parse(_fragment(page)) for page in corpus.pages(scale.shard)]
    lines = [fragments.render(entry) for entry in entries]
    whole = {
        number: blocks.deflate(b"".join(sorted(part)), len(part))
        for number, part in enumerate(lines[at : at + 500] for at in range(0, scale.shard, 500))
    }
    shard, state = Shard("pages", 1), ShardState(1, scale.shard, sum(map(len, lines)), 0)
    site = Site.model_validate(
        {"base_url": BASE, "web_root": "/", "tokens": ["sixteen characters"], "form": "xml.gz"}
    )
    files, pairs = ShardFiles(site), []
    for turn in range(3):
        began = time.perf_counter()
        urlset = etree.Element("urlset", nsmap={None: fragments.NAMESPACE})
        for entry in entries:
            url = etree.SubElement(urlset, "url")
            etree.SubElement(url, "loc").text = entry.loc
            etree.SubElement(url, "lastmod").text = entry.lastmod
        zlib.compress(etree.tostring(urlset, xml_declaration=True, encoding="UTF-8"), 6)
        full = time.perf_counter() - began
        for page in range(turn * 10, turn * 10 + 10):
            patch = {fragments.key(entries[page].loc): lines[page].replace(b"Z<", b"z<")}
            began = time.perf_counter()
            merged = files.merge(ShardWork(shard, state, {0: patch}, whole, None))
            files.render(merged)
            check(merged)
            pairs.append(((time.perf_counter() - began) * 1e3, full * 1e3))
    report.add(
        compared(f"one URL of {scale.shard:,} edited, gzip", "ms", pairs, "lxml + zlib 6 of all")
    )


def _fragment(page: Event) -> bytes:
    assert page.loc is not None
    return fragments.render(Entry(page.loc, page.lastmod))
