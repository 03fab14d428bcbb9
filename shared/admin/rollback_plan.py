"""Take back what a file's publishes changed: which events that needs. Pure.

What is taken back is taken back by ordinary events, so that the state stays what it always is: the
outcome of events. A page goes back to the line it had before the first of the publishes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from shared.errors import Fault, InvalidError
from shared.events.event import Event
from shared.sitemap import fragments
from shared.store.publishing.revisions import Revision

ELSEWHERE = "listed elsewhere by now"
GROUPED = "in a translation group: its alternates come from all of its pages, send these again"
NO_PLACE = "back in another file: its place in this one is taken or forgotten"
NO_ID = "back without its id, which is not kept: delete it by its URL until its sender names it"


class PageOwner(NamedTuple):
    """The id of a page, with what makes it unique among senders."""

    source: str
    kind: str
    id: str
    locale: str


class PageFact(NamedTuple):
    """What is known by now of one page that was changed.

    `line` is what lists it here, None if it is not. `elsewhere`: another file lists it, or its id
    is at another URL. `stamp_ms` is the version it has (ms since 1970). Of a page that is not
    listed: `returns` says that its place here is kept, `owner` is the id it had, `anonymous` that
    it had one which is not known any more. `news` and `title` are what its line does not hold.
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


class RollbackPlan(NamedTuple):
    """The events that take a file back: of pages that go, change, come back.

    `left` says which pages stay as they are, by why; `noted` what is not quite as before, likewise.
    `urls` are the pages that the file lists now.
    """

    gone: Sequence[Event]
    changed: Sequence[Event]
    back: Sequence[Event]
    left: Mapping[str, Sequence[str]]
    noted: Mapping[str, Sequence[str]]
    urls: int = 0

    @property
    def events(self) -> list[Event]:
        """All of them, in an order that makes room before it is needed; but the file must not be
        empty in between, for then it is no more, and nothing comes back to it.
        """
        first = len(self.gone) if self.urls > len(self.gone) else len(self.gone) - 1
        return [*self.gone[:first], *self.changed, *self.back, *self.gone[first:]]


def targets(revisions: Sequence[Revision]) -> dict[str, bytes | None]:
    """The line that each changed page had before all of `revisions` (newest first); None: none.

    InvalidError if the lines of one of them were too many to keep.
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
) -> RollbackPlan:
    """What takes each page back to its line in `wanted`, in a file of `section` that lists `urls`.

    `now_ms` is the time in ms since 1970, by the clock that orders events.
    """
    gone, changed, back = list[Event](), list[Event](), list[Event]()
    left: dict[str, list[str]] = {}
    noted: dict[str, list[str]] = {}
    for loc, line in sorted(wanted.items()):
        fact = facts[loc]
        if line == fact.line:
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
    """The event that lists a page by `line`: without a version, so that it is the newest, unless
    the page has one that lies in the future: then with the same, for the later of two counts.
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
    """Which other pages each line in `wanted` names as alternates, if any."""
    found = {}
    for loc, line in wanted.items():
        hrefs = {href for _, href in fragments.parse(line).alternates} if line else set()
        if others := hrefs - {loc}:
            found[loc] = others
    return found
