"""Dead letters of a site: group by error, show, retry and discard."""

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
    """Selection of dead letters: those with these `ids`, those with this `error`, or all; of the
    last two the oldest `most`, None: any number.
    """

    ids: Sequence[str] = ()
    error: str | None = None
    everything: bool = False
    most: int | None = None

    def words(self) -> tuple[str, ...]:
        """Return the selection as arguments of the command line."""
        if self.ids:
            return tuple(self.ids)
        return ("--all",) if self.error is None else (f"--error={self.error}",)

    def __str__(self) -> str:
        if self.ids:
            return ", ".join(self.ids)
        return "all" if self.error is None else self.error


class DeadLetterGroup(NamedTuple):
    """Dead letters with one error: their number, the first and the last (ms since 1970), the
    subjects of the latest, and their ids in the inbox.
    """

    error: str
    events: int
    first_ms: int
    last_ms: int
    examples: Sequence[str]
    ids: Sequence[str]


class DeadLetterActions:
    """Actions on the dead letters of one site."""

    def __init__(self, client: redis.Redis, site: str) -> None:
        self._dead, self._site = DeadLetters(client, site), site

    def __len__(self) -> int:
        """Return the number of dead letters."""
        return len(self._dead)

    def groups(self, most: int | None = None) -> list[DeadLetterGroup]:
        """Return groups by error, most frequent first; of the newest `most` letters (None: all)."""
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
        """Return those with `error` (None: all), newest first, before the id `before`."""
        return self._dead.latest(error=error, before=before)

    def show(self, ident: str) -> DeadLetter:
        """Return the dead letter with this id. Raises InvalidError if there is none."""
        letter = self._dead.get(ident) if is_id(ident) else None
        if letter is None:
            raise InvalidError(Fault(ident, "dead", _missing(self._site)))
        return letter

    def chosen(self, choice: DeadLetterFilter) -> list[DeadLetter]:
        """Return the dead letters that `choice` selects, oldest first.

        Raises InvalidError if an id is unknown, or unless exactly one way of selection is given.
        """
        ways = bool(choice.ids) + (choice.error is not None) + choice.everything
        if ways != 1:
            raise InvalidError(Fault("ID", "dead", "give ids, or --error TEXT, or --all"))
        if choice.ids:
            return [self.show(ident) for ident in dict.fromkeys(choice.ids)]
        return list(islice(self._dead.letters(error=choice.error), choice.most))

    def retry(self, choice: DeadLetterFilter) -> ActionOutcome:
        """Accept the selected events again, as the newest. Raises InvalidError as `chosen`."""
        ids = self._dead.retry([letter.id for letter in self.chosen(choice)])
        line = command("dead", "retry", *choice.words(), site=self._site)
        said = f"{counted(len(ids), 'event')} accepted again"
        return ActionOutcome("dead retry", self._site, str(choice), said, line, len(ids), ids)

    def discard(self, choice: DeadLetterFilter, save: Save | None = None) -> ActionOutcome:
        """Pass the selected events to `save`, then delete them. Raises InvalidError as `chosen`."""
        letters = self.chosen(choice)
        if save is not None:
            save(letter.payload for letter in letters)
        gone = self._dead.discard([letter.id for letter in letters])
        line = command("dead", "discard", *choice.words(), site=self._site)
        said = f"{counted(gone, 'event')} discarded"
        return ActionOutcome("dead discard", self._site, str(choice), said, line, gone)


def subject(payload: bytes) -> str:
    """Return the subject of a stored event: its URL, else its id, else the scope of a resync."""
    found = members(payload)
    if about := found.get("loc") or (found.get("id") and f"id {found['id']}"):
        return str(about)
    if found.get("type") == RESYNC:
        return str(found.get("prefix") or found.get("section") or "everything")
    return "an event that cannot be read"


def _missing(site: str) -> str:
    return f"no dead letter has this id; to list them: {command('dead', 'list', site=site)}"
