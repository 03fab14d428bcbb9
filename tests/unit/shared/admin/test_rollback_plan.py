"""What takes a file back: planned from its revisions, whatever its pages went through."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.admin import rollback_plan
from shared.admin.rollback_plan import PageFact, RollbackPlan
from shared.errors import InvalidError
from shared.events.event import Event
from shared.sitemap import fragments
from shared.sitemap.entry import Entry
from shared.sitemap.shards import Shard
from shared.store.publishing.publish_batch import PublishedFile
from shared.store.publishing.revisions import ChangedLine, Revision
from tests.unit.strategies import entries, extended_entries

SHARD = Shard("posts", 1)
NOW = 1_795_256_430_000
NAMES = [f"https://www.example.com/{n}" for n in range(6)]

Lines = Mapping[str, bytes]


def line(loc: str, day: int = 1) -> bytes:
    return fragments.render(Entry(loc, f"2026-01-{day:02}"))


def revision(at: int, lines: Sequence[ChangedLine] | None) -> Revision:
    file = PublishedFile(at, at, 1, 1)
    return Revision(f"{at}-0", SHARD, file, 1, None if lines is None else tuple(lines))


def between(at: int, before: Lines, after: Lines) -> Revision:
    locs = sorted(before.keys() | after.keys())
    changed = [ChangedLine(before.get(loc), after.get(loc)) for loc in locs]
    return revision(at, [each for each in changed if each.before != each.after])


def played(lines: Lines, plan: RollbackPlan) -> dict[str, bytes]:
    """The lines after the events of a plan."""
    found = dict(lines)
    for event in plan.events:
        assert Event.load(event.dump()) == event
        assert event.loc is not None
        if event.type == "delete":
            del found[event.loc]
            continue
        entry = Entry(
            event.loc, event.lastmod, event.changefreq, event.priority, event.images,
            event.videos, event.news, event.alternates,
        )  # fmt: skip
        found[event.loc] = fragments.render(entry)
    return found


def states(of: st.SearchStrategy[Entry], most: int) -> st.SearchStrategy[Lines]:
    """What a file may list: up to `most` pages, each like one of these entries."""

    def lines(found: dict[str, Entry]) -> Lines:
        return {
            loc: fragments.render(
                Entry(loc, e.lastmod, e.changefreq, e.priority, alternates=e.alternates)
            )
            for loc, e in found.items()
        }

    return st.dictionaries(st.sampled_from(NAMES), of, max_size=most).map(lines)


@settings(max_examples=40)
@given(st.lists(states(entries, 6), min_size=2, max_size=5), st.data())
def test_a_file_goes_back_to_the_lines_it_had_before_the_revision(
    history: list[Lines], data: st.DataObject
) -> None:
    revisions = [between(n, a, b) for n, (a, b) in enumerate(pairwise(history))]
    first = data.draw(st.integers(0, len(revisions) - 1))
    now = history[-1]

    wanted = rollback_plan.targets(revisions[first:][::-1])
    facts = {loc: PageFact(now.get(loc)) for loc in wanted}
    plan = rollback_plan.plan(wanted, facts, "posts", len(now), NOW)

    assert played(now, plan) == history[first]
    assert not plan.left
    assert all(event.section == "posts" for event in (*plan.changed, *plan.back))


@settings(max_examples=60)
@given(states(extended_entries, 3), states(extended_entries, 3))
def test_a_file_is_never_empty_in_between_if_it_is_not_at_the_end(
    before: Lines, now: Lines
) -> None:
    wanted = rollback_plan.targets([between(1, before, now)])
    plan = rollback_plan.plan(
        wanted, {loc: PageFact(now.get(loc)) for loc in wanted}, "posts", len(now), NOW
    )
    count, least = len(now), len(now)
    for event in plan.events:
        changes = event.loc in now
        count += -1 if event.type == "delete" else 0 if changes else 1
        least = min(least, count)

    assert count == len(before)
    assert least > 0 or not before or not now


def test_what_lies_in_the_future_gets_the_same_version_and_all_else_none() -> None:
    wanted = {loc: line(loc) for loc in NAMES[:2]}
    facts = {
        NAMES[0]: PageFact(line(NAMES[0], 2), stamp_ms=NOW + 5),
        NAMES[1]: PageFact(line(NAMES[1], 2), stamp_ms=NOW - 5),
    }

    plan = rollback_plan.plan(wanted, facts, "posts", 2, NOW)

    assert [event.version for event in plan.events] == [NOW + 5, None]


def test_pages_of_groups_and_pages_that_went_elsewhere_are_left_and_named() -> None:
    grouped, elsewhere, away, plain = NAMES[:4]
    wanted = {grouped: line(grouped), elsewhere: line(elsewhere), away: None, plain: None}
    facts = {
        grouped: PageFact(line(grouped, 2), grouped=True), elsewhere: PageFact(elsewhere=True),
        away: PageFact(elsewhere=True), plain: PageFact(line(plain)),
    }  # fmt: skip

    plan = rollback_plan.plan(wanted, facts, "posts", 3, NOW)

    assert plan.left == {rollback_plan.GROUPED: [grouped], rollback_plan.ELSEWHERE: [elsewhere]}
    assert [event.loc for event in plan.events] == [plain]


def test_lines_that_were_too_many_to_keep_are_refused_with_what_to_do() -> None:
    with pytest.raises(InvalidError, match="restore a backup, or make the source the truth"):
        rollback_plan.targets([revision(2, []), revision(1, None)])
