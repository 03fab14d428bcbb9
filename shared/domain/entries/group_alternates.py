"""Keep the alternates of a translation group identical on every member (PROTOCOL H2, H3).

A batch changes groups event by event, and each event is reported by its own effect. The pages list
the groups as they are after the whole batch. Pure, like shared.domain.decide.
"""

from __future__ import annotations

from typing import NamedTuple

from shared.domain import translation_groups
from shared.domain.batch_state import BatchState, Changes
from shared.domain.translation_groups import GroupMember, Members
from shared.events.event import Event
from shared.sitemap import fragments
from shared.sitemap.extensions.alternates import Alternates


class Links(NamedTuple):
    """Alternates of a group member before an event: `had` are in its bytes, `due` are those after
    the earlier events of the batch.
    """

    had: Alternates
    due: Alternates


def of_page(state: BatchState, changes: Changes, loc: str) -> Links | None:
    """The links of the page at `loc`; None if it is in no group."""
    page = state.pages.get(loc)
    if page is None or not page.group:
        return None
    now = translation_groups.alternates(_members(state, changes, page.group))
    return Links(_linked(state, loc, page.group), translation_groups.listed_by(loc, now))


def enter(state: BatchState, changes: Changes, event: Event, when: int) -> bytes:
    """Move the page of `event` from its former group to the one it names; return the new group.

    Return an empty digest if it names none. `when` is the stamp of the event (page_record.stamp).
    Raises GroupFullError.
    """
    loc = event.loc
    assert loc is not None
    page = state.pages.get(loc)
    group = translation_groups.digest_of(event.group) if event.group else b""
    if page and page.group and page.group != group:
        leave(state, changes, loc, page.group)
    if group:
        members = _members(state, changes, group)
        if loc not in members and len(members) >= translation_groups.MAX_MEMBERS:
            raise translation_groups.GroupFullError(
                f"a group has {translation_groups.MAX_MEMBERS} pages at most"
            )
        changes.groups[group] = {**members, loc: GroupMember(when, event.lang)}
    return group


def leave(state: BatchState, changes: Changes, loc: str, group: bytes) -> None:
    """Take the page at `loc` out of `group`."""
    members = _members(state, changes, group)
    changes.groups[group] = {at: member for at, member in members.items() if at != loc}
    changes.linked[loc] = None


def _members(state: BatchState, changes: Changes, group: bytes) -> Members:
    """The members of `group` after `changes`: none are left of an empty one."""
    return changes.groups[group] if group in changes.groups else state.groups[group]


def _linked(state: BatchState, loc: str, group: bytes) -> Alternates:
    """The alternates in the bytes of the member `loc` of `group`, as stored or rendered since."""
    if loc in state.linked:
        return state.linked[loc]
    return translation_groups.listed_by(loc, state.sets[group])


def outdated(state: BatchState) -> dict[str, tuple[bytes, Alternates]]:
    """Pages whose alternates differ from those of their group: their group and new alternates.

    A page that was rendered in the middle of the batch may list a set that is valid neither before
    nor after it (PROTOCOL H2, H3).
    """
    found = {}
    for group, members in state.groups.items():
        now, here = translation_groups.alternates(members), translation_groups.own(members)
        # If the set is unchanged, only pages rendered in this batch can be wrong.
        for loc in here if now != state.sets[group] else state.linked.keys() & here.keys():
            listed = translation_groups.listed_by(loc, now)
            if _linked(state, loc, group) != listed:
                found[loc] = group, listed
    # Sets and stored hashes have no order, and pages that outgrow their file move in this one.
    return dict(sorted(found.items()))


def relink(
    state: BatchState, loc: str, group: bytes, fragment: bytes, listed: Alternates
) -> Changes:
    """Return what gives the page `loc`, listed as `fragment`, these alternates. `state` must hold
    the page.
    """
    changes, page = Changes(), state.pages[loc]
    if page is None or not page.live or page.group != group:
        leave(state, changes, loc, group)  # left without an event: the store was edited
        return changes
    changes.linked[loc] = listed
    changed = fragments.with_alternates(fragment, listed)
    if changed != fragment:
        state.relisted(loc, changed, changes)
    return changes
