"""Failed: events that were given up, by error; retry and discard."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

import redis

from shared.admin.outcomes import ActionOutcome, command, counted, is_id
from shared.admin.queues import Save, members
from shared.errors import Fault, InvalidError
from shared.events.event_fields import RESYNC
from shared.store.operations.dead_letters import DeadLetter, DeadLetters

_EXAMPLES = 3


class DeadLetterFilter(NamedTuple):
    """Which events are meant: those of these `ids`, those with this `error`, or all; of these two
    the oldest `most`, None: any number.
    """

    ids: Sequence[str] = ()
    error: str | None = None
    everything: bool = False
    most: int | None = None

    def words(self) -> tuple[str, ...]:
        """The same on the command line."""
        if self.ids:
            return tuple(self.ids)
        return ("--all",) if self.error is None else (f"--error={self.error}",)

    def __str__(self) -> str:
        if self.ids:
            return ", ".join(self.ids)
        return "all" if self.error is None else self.error


class DeadLetterGroup(NamedTuple):
    """The events that failed with one error: how many, the first and the last (ms since 1970), what
    the last of them are about, and their ids, as they were accepted.
    """

    error: str
    events: int
    first_ms: int
    last_ms: int
    examples: Sequence[str]
    ids: Sequence[str]


class DeadLetterActions:
    """The dead letters of one site."""

    def __init__(self, client: redis.Redis, site: str) -> None:
        self._dead, self._site = DeadLetters(client, site), site

    def __len__(self) -> int:
        """How many there are."""
        return len(self._dead)

    def groups(self, most: int | None = None) -> list[DeadLetterGroup]:
        """By error, the most frequent first; of the newest `most` letters, None: of all."""
        found: dict[str, DeadLetterGroup] = {}
        for letter in islice(self._dead.latest(), most):
            at, error = letter.since_ms, letter.error
            group = found.get(error, DeadLetterGroup(error, 0, at, at, [], []))
            examples, ids = group.examples, group.ids
            if group.events < _EXAMPLES:
                examples, ids = [*examples, subject(letter.payload)], [*ids, letter.event]
            found[error] = DeadLetterGroup(
                error, group.events + 1, at, group.last_ms, examples, ids
            )
        return sorted(found.values(), key=lambda group: -group.events)

    def latest(self, error: str | None = None, before: str = "") -> Iterator[DeadLetter]:
        """Those that failed with `error` (None: all), newest first, from the id `before` on."""
        return self._dead.latest(error=error, before=before)

    def show(self, ident: str) -> DeadLetter:
        """One of them; InvalidError if it is not there."""
        letter = self._dead.get(ident) if is_id(ident) else None
        if letter is None:
            raise InvalidError(Fault(ident, "dead", _missing(self._site)))
        return letter

    def chosen(self, choice: DeadLetterFilter) -> list[DeadLetter]:
        """The letters of `choice`, oldest first.

        InvalidError if it names one that is not there, or more than one way of choosing, or none.
        """
        ways = bool(choice.ids) + (choice.error is not None) + choice.everything
        if ways != 1:
            raise InvalidError(Fault("ID", "dead", "give ids, or --error TEXT, or --all"))
        if choice.ids:
            return [self.show(ident) for ident in dict.fromkeys(choice.ids)]
        return list(islice(self._dead.letters(error=choice.error), choice.most))

    def retry(self, choice: DeadLetterFilter) -> ActionOutcome:
        """Accept the chosen events again, as the newest."""
        ids = self._dead.retry([letter.id for letter in self.chosen(choice)])
        line = command("dead", "retry", *choice.words(), site=self._site)
        said = f"{counted(len(ids), 'event')} accepted again"
        return ActionOutcome("dead retry", self._site, str(choice), said, line, len(ids), ids)

    def discard(self, choice: DeadLetterFilter, save: Save | None = None) -> ActionOutcome:
        """Forget the chosen events for ever; first they are handed to `save`."""
        letters = self.chosen(choice)
        if save is not None:
            save(letter.payload for letter in letters)
        gone = self._dead.discard([letter.id for letter in letters])
        line = command("dead", "discard", *choice.words(), site=self._site)
        said = f"{counted(gone, 'event')} forgotten"
        return ActionOutcome("dead discard", self._site, str(choice), said, line, gone)


def subject(payload: bytes) -> str:
    """What a stored event is about: its URL, else its id, else what a resync is to compare."""
    found = members(payload)
    if about := found.get("loc") or (found.get("id") and f"id {found['id']}"):
        return str(about)
    if found.get("type") == RESYNC:
        return str(found.get("prefix") or found.get("section") or "everything")
    return "an event that cannot be read"


def _missing(site: str) -> str:
    return f"no event that failed has this id; to see them: {command('dead', 'list', site=site)}"
