"""Decisions on new pages are those of `decide`; plain pages are the events they stand for."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from shared.domain.batch_state import BatchState, Policy
from shared.domain.decide import FUTURE_LASTMOD, decide
from shared.domain.new_pages import ADDED, decide_new
from shared.domain.page_record import Arrival, subjects
from shared.domain.routing import Family, Routing
from shared.events.event import Event
from shared.events.plain_page import PlainPage
from tests.unit.decided import NOW, SECTIONS, up
from tests.unit.strategies import CHANGEFREQS, lastmods, locs, priorities

versions = st.none() | st.integers(NOW - 10**9, NOW + 10**9)
pages = st.builds(
    PlainPage,
    locs,
    st.none() | lastmods,
    st.none() | st.sampled_from(sorted(CHANGEFREQS)),
    st.none() | priorities,
    st.none() | st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=9),
    st.none() | st.sampled_from(sorted(SECTIONS)),
    versions,
)
arrivals = st.builds(Arrival, st.integers(NOW - 100_000, NOW + 100_000), st.just(0))


@given(st.lists(pages, max_size=4), arrivals, st.integers(NOW - 10**6, NOW), st.booleans())
def test_the_decision_on_a_new_page_is_that_of_decide(
    stated: list[PlainPage], arrival: Arrival, version: int, hints: bool
) -> None:
    found = list(decide_new(stated, version, arrival, hints=hints))

    for page, new in zip(stated, found, strict=True):
        event = page.event(version)
        loc, owner = subjects(event)
        assert loc is not None
        state = BatchState(SECTIONS, pages={loc: None}, claims={owner: None} if owner else {})
        decision = decide(state, event, arrival, Policy(Routing({"posts": Family()}), hints))
        if new is None:
            assert FUTURE_LASTMOD in decision.reason
            continue
        fragment, tail, claimed, claim = new
        changes = decision.changes
        assert (decision.changed, decision.reason) == (True, ADDED)
        record = changes.pages.pop(loc)
        assert (record.place, record.tail(), changes.fragments.pop(loc)) == (None, tail, fragment)
        assert changes.placed.pop(loc) == SECTIONS[page.section or "pages"]
        assert {o: c.pack() for o, c in changes.claims.items()} == ({owner: claim} if owner else {})
        assert claimed == owner
        changes.claims.clear()
        assert changes == type(changes)()


@given(pages, versions)
def test_a_plain_page_is_stored_as_its_event_and_comes_from_it(
    page: PlainPage, version: int | None
) -> None:
    event = page.event(version)

    assert page.dump(version or 0) == page.event(version or 0).dump()
    assert PlainPage.of(event) == page._replace(version=event.version)
    assert Event.load(event.dump()) == event


def test_an_event_that_says_more_is_no_plain_page() -> None:
    more = [
        up("a", group="g", lang=("en",)), up("a", title="A title"), up("a", noindex=True),
        up("a", images=({"loc": "https://www.example.com/i.png"},)), Event("delete", id="7"),
        up("a", canonical="https://www.example.com/b"), up("a", id="7", source="ghost"),
    ]  # fmt: skip

    assert not any(map(PlainPage.of, more))
