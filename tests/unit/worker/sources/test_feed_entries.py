"""A feed says the same whether a hub delivers it or it is imported (PROTOCOL F11)."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.sitemap import feed_parser
from worker.sources import SourceRecord, read

ATOM = '<feed xmlns="http://www.w3.org/2005/Atom" xmlns:o="urn:o"><entry>{}</entry></feed>'
RSS = '<rss version="2.0" xmlns:o="urn:o"><channel><item>{}</item></channel></rss>'
PARTS = [
    '<link href="https://a.example/1"/>', '<link rel="alternate" href=" https://a.example/2 "/>',
    '<link rel="edit" href="https://a.example/3"/>', "<link>https://a.example/4</link>", "<link/>",
    "<o:link>https://a.example/5</o:link>", '<o:link href="https://a.example/6"/>',
    "<guid>https://a.example/7</guid>", '<guid isPermaLink="false">https://a.example/8</guid>',
    '<guid isPermaLink=" true "> https://a.example/9 </guid>', "<guid>tag:a.example,2026:1</guid>",
    "<id>https://a.example/10</id>", "<title>https://a.example/11</title>",
    "<author><link>https://a.example/12</link></author>",
    "<updated>2026-11-21T12:00:00Z</updated>", "<updated> 2026-11-20 </updated>", "<updated/>",
    "<pubDate>Sat, 21 Nov 2026 12:00:00 GMT</pubDate>", "<pubDate>yesterday</pubDate>",
]  # fmt: skip


@pytest.mark.parametrize("form", [ATOM, RSS])
@given(parts=st.lists(st.sampled_from(PARTS), max_size=6))
def test_both_readers_take_the_same_page_and_time(form: str, parts: list[str]) -> None:
    feed = form.format("".join(parts))
    (delivered,) = feed_parser.read(feed.encode()).items
    with TemporaryDirectory() as folder:
        path = Path(folder, "feed.xml")
        path.write_text(feed)
        imported = [item for item in read(str(path)) if isinstance(item, SourceRecord)]

    time = delivered.updated if form == ATOM else delivered.published
    assert [(page.loc, page.lastmod or "") for page in imported] == (
        [(delivered.link, time)] if delivered.link else []
    )
