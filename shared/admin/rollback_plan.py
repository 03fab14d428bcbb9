"""Plan of a rollback: the events that revert publishes of a file. Pure.

Publishes are reverted by ordinary events, so that the state remains the outcome of events. A page
returns to the line it had before the first of the publishes.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from shared.domain.page_record import Arrival
from shared.errors import Fault, InvalidError
from shared.events.event import Event
from shared.sitemap import fragments
from shared.store.publishing.revisions import Revision

ELSEWHERE = "now listed in another file"
GROUPED = "in a translation group, whose alternates come from all of its pages: send these again"
SINCE = "changed since the plan was shown: skipped"
NO_PLACE = "back in another file: its place in this one is not free"
NO_ID = "back without its id, which is not kept: delete it by URL until its sender sends the id"


class PageOwner(NamedTuple):
    """Id of a page, with the fields that make it unique among senders."""

    source: str
    kind: str
    id: str
    locale: str


class PageFact(NamedTuple):
    """Current state of one page that the publishes changed.

    `line` is its line in this file, None if it is not listed here. `elsewhere`: another file lists
    it, or its id is at another URL. `stamp_ms` is its version (ms since 1970). Of a page that is
    not listed: `returns` is True if its place here is kept, `owner` is the id it had, `anonymous`
    is True if that id is unknown. `news` and `title` are not part of its line.
    """

    line: bytes | None = None
    elsewhere: bool = False
    grouped: bool = False
    stamp_ms: int = 0
    returns: bool = True
    owner: PageOwner | None = None
    anonymous: bool = False
    news: Mapping[str, Any] | None = None
    title: str = ""


class ShownPlan(NamedTuple):
    """Knowledge of a plan that was shown: the newest revision it reverts, and its time (ms
    since 1970, by the clock that orders events).
    """

    upto: str
    at_ms: int

    def knew(self, revision: Revision) -> bool:
        """Return True if `revision` was published when the plan was shown."""
        return Arrival.of(revision.at) <= Arrival.of(self.upto)


class RollbackPlan(NamedTuple):
    """Events that roll a file back: pages that are deleted, changed, listed again.

    `left` maps reasons to the pages that stay as they are; `noted` maps differences from the
    earlier state likewise. `urls` is the number of pages that the file lists now; `shown` says what
    the plan knows.
    """

    gone: Sequence[Event]
    changed: Sequence[Event]
    back: Sequence[Event]
    left: Mapping[str, Sequence[str]]
    noted: Mapping[str, Sequence[str]]
    urls: int = 0
    shown: ShownPlan | None = None

    @property
    def events(self) -> list[Event]:
        """All events, in an order that makes room before it is needed; the file must not be empty
        in between, as pages do not return to a removed file.
        """
        first = len(self.gone) if self.urls > len(self.gone) else len(self.gone) - 1
        return [*self.gone[:first], *self.changed, *self.back, *self.gone[first:]]


def targets(revisions: Sequence[Revision]) -> dict[str, bytes | None]:
    """Return the line of each changed page before all of `revisions` (newest first); None: none.

    Raises InvalidError if the lines of one of them were too many to keep.
    """
    found: dict[str, bytes | None] = {}
    for revision in revisions:
        if revision.lines is None:
            detail = (
                f"changed {revision.changed} lines, too many to keep: restore a backup, or make "
                "the source the truth again (sitemapd reconcile)"
            )
            raise InvalidError(Fault(revision.at, "revision", detail))
        found |= {line.loc: line.before for line in revision.lines}
    return found


def plan(
    wanted: Mapping[str, bytes | None],
    facts: Mapping[str, PageFact],
    section: str,
    urls: int,
    now_ms: int,
    since: Container[str] = (),
) -> RollbackPlan:
    """Plan to return each page to its line in `wanted`; the file of `section` lists `urls` pages.

    `now_ms` is the time in ms since 1970, by the clock that orders events. The pages
    `since` changed after the plan was shown, and stay as they are.
    """
    gone, changed, back = list[Event](), list[Event](), list[Event]()
    left: dict[str, list[str]] = {}
    noted: dict[str, list[str]] = {}
    for loc, line in sorted(wanted.items()):
        fact = facts[loc]
        if line == fact.line:
            continue
        if loc in since:
            left.setdefault(SINCE, []).append(loc)
            continue
        if why := _obstacle(fact):
            if line is not None or not fact.elsewhere:
                left.setdefault(why, []).append(loc)
            continue
        version = fact.stamp_ms if fact.stamp_ms > now_ms else None
        if line is None:
            gone.append(Event("delete", loc, version=version))
        elif fact.line is not None:
            changed.append(_restored(line, fact, section, version))
        else:
            back.append(_restored(line, fact, section, version))
            for note in _notes(fact):
                noted.setdefault(note, []).append(loc)
    return RollbackPlan(gone, changed, back, left, noted, urls)


def _obstacle(fact: PageFact) -> str:
    if fact.elsewhere:
        return ELSEWHERE
    return GROUPED if fact.grouped else ""


def _notes(fact: PageFact) -> Iterator[str]:
    if not fact.returns:
        yield NO_PLACE
    if fact.anonymous:
        yield NO_ID


def _restored(line: bytes, fact: PageFact, section: str, version: int | None) -> Event:
    """Return the event that lists a page by `line`: without a version, so that it is the newest,
    unless the page has one in the future: then with the same, as the later of two equal ones wins.
    """
    entry = fragments.parse(line)
    owner = fact.owner._asdict() if fact.owner else {}
    return Event(
        "upsert", entry.loc, section=section, version=version, lastmod=entry.lastmod,
        changefreq=entry.changefreq, priority=entry.priority, images=entry.images,
        videos=entry.videos, news=fact.news, alternates=entry.alternates,
        title=fact.title or None, **owner,
    )  # fmt: skip


def linked(wanted: Mapping[str, bytes | None]) -> dict[str, set[str]]:
    """Return the other pages that each line in `wanted` names as alternates, if any."""
    found = {}
    for loc, line in wanted.items():
        hrefs = {href for _, href in fragments.parse(line).alternates} if line else set()
        if others := hrefs - {loc}:
            found[loc] = others
    return found
