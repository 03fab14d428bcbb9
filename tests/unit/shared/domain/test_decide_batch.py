"""Decisions on plain events are those of `decide`."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from shared.domain import translation_groups
from shared.domain.batch_state import NEWS, BatchState, Outcome, Policy
from shared.domain.decide import decide, include
from shared.domain.decide_batch import ArrivedEvent, decide_all, decide_plain
from shared.domain.page_record import Arrival, subjects
from shared.domain.routing import Family, Routing
from shared.events.event import Event
from tests.unit.decided import NOW, SECTIONS, gone, up

NAMES = {number: name for name, number in SECTIONS.items()}
IDS = st.none() | st.sampled_from("12")
STAMPS = st.none() | st.integers(NOW - 3, NOW + 3)
members = st.fixed_dictionaries(
    {},
    optional={
        "day": st.integers(1, 2),
        "lastmod": st.none() | st.just("2031-01-01"),
        "section": st.sampled_from(sorted(SECTIONS)),
        "changefreq": st.just("daily"),
        "priority": st.just("0.5"),
        "noindex": st.booleans(),
        "source": st.just("ghost"),
        "group": st.none() | st.just("g"),
        "lang": st.just(("en",)),
        "title": st.just("A title"),
    },
)
events = st.builds(
    lambda name, version, ident, more: up(name, version, id=ident, **more),
    st.sampled_from("ab"), STAMPS, IDS, members,
) | st.builds(lambda name, version, ident: gone(name, version, id=ident),
              st.sampled_from("ab"), STAMPS, IDS)  # fmt: skip
policies = st.builds(
    lambda hints, ruled: Policy(Routing({"posts": Family(paths=("/b*",) if ruled else ())}), hints),
    st.booleans(), st.booleans(),
)  # fmt: skip


def _loaded(event: Event) -> Event:
    """Return `event` as the worker reads it: with the members that were stated alone."""
    return Event.load(event.dump())


def _state(history: list[Event], *, fed: bool = False, news: bool = False) -> BatchState:
    groups = {translation_groups.digest_of(event.group) for event in history if event.group}
    state = BatchState(SECTIONS, NAMES, groups={group: {} for group in groups})
    state.sets = dict.fromkeys(groups, ())
    for loc, owner in map(subjects, history):
        if loc:
            state.pages[loc] = None
            state.pages |= {NEWS + loc: None} if news else {}
            state.feed |= {loc: None} if fed else {}
        if owner:
            state.claims[owner] = None
    return state


@given(st.lists(events, max_size=6), policies, st.booleans())
def test_the_decision_on_a_plain_event_is_that_of_decide(
    history: list[Event], policy: Policy, fed: bool
) -> None:
    state = _state(history, fed=fed)
    for sequence, event in enumerate(map(_loaded, history)):
        before, arrival = deepcopy(state), Arrival(NOW + sequence, 0)
        found = decide_plain(before, event, arrival, policy)

        changed, reason, changes = decide(state, event, arrival, policy)
        if found is None:
            assert before == state
        include(state, changes)
        if found is not None:
            assert (found, before) == (Outcome(changed, reason), state)


def test_a_page_of_a_feed_of_news_or_of_a_group_is_left_to_decide() -> None:
    plain, arrival, policy = _loaded(up("a")), Arrival(NOW, 0), Policy(Routing({}))
    member = up("a", group="g", lang=("en",))
    grouped = _state([member])
    include(grouped, decide(grouped, member, arrival, policy).changes)

    states = _state([plain], fed=True), _state([plain], news=True), grouped
    assert [decide_plain(state, plain, arrival, policy) for state in states] == [None] * 3
    assert decide_plain(_state([plain]), plain, arrival, policy) == Outcome(True, "added")


def test_engines_are_notified_of_a_changed_plain_page_unless_it_is_quiet() -> None:
    arrived = ArrivedEvent(_loaded(up("a")), Arrival(NOW, 0), quiet=False)
    policy = Policy(Routing({}))

    _, told = decide_all(_state([arrived.event]), [arrived], policy)
    _, again = decide_all(replace(told, notified=set()), [arrived], policy)
    _, quiet = decide_all(_state([arrived.event]), [arrived._replace(quiet=True)], policy)

    assert (told.notified, again.notified, quiet.notified) == ({arrived.event.loc}, set(), set())
