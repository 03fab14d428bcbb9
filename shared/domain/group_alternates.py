"""Keep the alternates of a translation group identical on every member (PROTOCOL H2, H3).

A batch changes groups event by event, and each event is reported by its own effect. The pages list
the groups as they are after the whole batch. Pure, like shared.domain.decide: the outcome is
recorded in the batch state.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from shared.domain import translation_groups
from shared.domain.batch_state import BatchState
from shared.domain.translation_groups import GroupMember
from shared.events.event import Event
from shared.sitemap import fragments
from shared.sitemap.extensions.alternates import Alternates


class Links(NamedTuple):
    """Alternates of a group member before an event: `had` are in its bytes, `due` are those after
    the earlier events of the batch.
    """

    had: Alternates
    due: Alternates


def of_page(known: BatchState, loc: str) -> Links | None:
    """The links of the page at `loc`; None if it is in no group."""
    page = known.pages.get(loc)
    if page is None or not page.group:
        return None
    now = translation_groups.alternates(known.groups[page.group])
    return Links(_linked(known, loc, page.group), translation_groups.listed_by(loc, now))


def enter(known: BatchState, event: Event, when: int) -> bytes:
    """Move the page of `event` from its former group to the one it names; return the new group.

    Return an empty digest if it names none. `when` is the stamp of the event (page_record.stamp).
    Raises GroupFullError.
    """
    loc = event.loc
    assert loc is not None
    page = known.pages.get(loc)
    group = translation_groups.digest_of(event.group) if event.group else b""
    if page and page.group and page.group != group:
        leave(known, loc, page.group)
    if group:
        members = known.groups[group]
        if loc not in members and len(members) >= translation_groups.MAX_MEMBERS:
            raise translation_groups.GroupFullError(
                f"a group has {translation_groups.MAX_MEMBERS} pages at most"
            )
        known.groups[group] = {**members, loc: GroupMember(when, event.lang)}
    return group


def leave(known: BatchState, loc: str, group: bytes) -> None:
    """Take the page at `loc` out of `group`."""
    known.groups[group] = {at: m for at, m in known.groups[group].items() if at != loc}
    known.linked.pop(loc, None)


def _linked(known: BatchState, loc: str, group: bytes) -> Alternates:
    """The alternates in the bytes of the member `loc` of `group`, as stored or rendered since."""
    if loc in known.linked:
        return known.linked[loc]
    return translation_groups.listed_by(loc, known.sets[group])


def outdated(known: BatchState) -> dict[str, tuple[bytes, Alternates]]:
    """Pages whose alternates differ from those of their group: their group and new alternates.

    A page that was rendered in the middle of the batch may list a set that is valid neither before
    nor after it (PROTOCOL H2, H3).
    """
    found = {}
    for group, members in known.groups.items():
        now = translation_groups.alternates(members)
        # If the set is unchanged, only pages rendered in this batch can be wrong.
        for loc in members if now != known.sets[group] else known.linked.keys() & members.keys():
            listed = translation_groups.listed_by(loc, now)
            if _linked(known, loc, group) != listed:
                found[loc] = group, listed
    # Sets and stored hashes have no order, and pages that outgrow their file move in this one.
    return dict(sorted(found.items()))


def apart(known: BatchState) -> BatchState:
    """Shallow copy of `known`: decisions on it leave the groups of `known` unchanged."""
    return replace(known, groups=dict(known.groups), linked=dict(known.linked))


def relink(known: BatchState, loc: str, group: bytes, fragment: bytes, listed: Alternates) -> None:
    """Set the alternates of the page `loc`, listed as `fragment`. `known` must hold the page."""
    page = known.pages[loc]
    if page is None or not page.live or page.group != group:
        leave(known, loc, group)  # left without an event: the store was edited
        return
    known.linked[loc] = listed
    changed = fragments.with_alternates(fragment, listed)
    if changed != fragment:
        known.relist(loc, changed)
