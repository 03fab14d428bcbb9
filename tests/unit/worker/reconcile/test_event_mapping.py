"""Records that need no repair become plain pages, which say what their events say."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from shared.events.event_fields import EventRules
from shared.events.plain_page import PlainPage
from shared.sitemap.urls import Base
from worker.reconcile.event_mapping import EventMapper, Remark
from worker.sources import SourceRecord

NOW = 1_795_256_430_000
RULES = EventRules(
    Base.parse("https://www.example.com/"), frozenset({"pages", "posts", "news"}),
    news=frozenset({"news"}), clock=lambda: NOW,
)  # fmt: skip
DATES = ("2026-01-02", "2026-01-02T03:04:05+01:00", "2026-01", "2026-02-30", "2099-01-01", "soon")

records = st.builds(
    SourceRecord,
    st.sampled_from(("/a", "/a b", "/A%2f", "/%41", "/./a", "//b", "/ö", "", "/a#b")).map(
        "https://www.example.com{}".format
    )
    | st.text(max_size=9),
    st.just("s.xml#1"),
    st.none() | st.sampled_from(DATES) | st.text(max_size=9),
    st.none() | st.sampled_from(("daily", "Daily", "often")),
    st.none() | st.sampled_from(("0.5", "1", "+1.0", "2", "high")),
    st.none()
    | st.fixed_dictionaries(
        {},
        optional={
            "id": st.text(max_size=4) | st.just("7") | st.just("7" * 513),
            "section": st.sampled_from(("pages", "posts", "news", "none")),
            "version": st.sampled_from(("1700000000000", "2025-01-01", "soon")),
            "title": st.just("A title"),
        },
    ),
    images=st.sampled_from(((), ({"loc": "https://www.example.com/i.png"},))),
    silent=st.sampled_from((frozenset[str](), frozenset({"section", "images"}))),
)


@given(records, st.sampled_from((None, "pages", "news")))
def test_a_page_says_what_the_event_of_its_record_says(
    record: SourceRecord, section: str | None
) -> None:
    mapper = EventMapper(RULES, section, lambda: NOW)
    said: dict[str, list[Remark]] = {"page": [], "again": [], "event": []}
    pages: list[Any] = [mapper.page(record, None, said[name].append) for name in ("page", "again")]

    event = mapper.event(record, None, said["event"].append)

    assert said["page"] == said["again"] == said["event"]
    for page in pages:
        assert event == (page.event() if isinstance(page, PlainPage) else page)


def test_a_record_without_extensions_is_a_plain_page() -> None:
    extra = {"id": "7", "section": "posts"}
    record = SourceRecord("https://www.example.com/a", "p.csv#1", "2026-01-02", extra=extra)

    page = EventMapper(RULES, None, lambda: NOW).page(record, None, lambda _: None)

    assert page == PlainPage(record.loc, record.lastmod, id="7", section="posts")
