"""Failed: events that were given up, by error; retry and discard."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import redis

from shared.admin.outcomes import Outcome, command, counted, is_id
from shared.admin.queues import Save, members
from shared.errors import Fault, InvalidError
from shared.store.dead import Dead, Letter

_EXAMPLES = 3


class Choice(NamedTuple):
    """Which events are meant: those of these `ids`, those with this `error`, or all."""

    ids: Sequence[str] = ()
    error: str | None = None
    everything: bool = False

    def words(self) -> tuple[str, ...]:
        """The same on the command line."""
        if self.ids:
            return tuple(self.ids)
        return ("--all",) if self.error is None else (f"--error={self.error}",)

    def __str__(self) -> str:
        if self.ids:
            return ", ".join(self.ids)
        return "all" if self.error is None else self.error


class Group(NamedTuple):
    """The events that failed with one error: how many, the first and the last (ms since 1970), and
    what some of them are about.
    """

    error: str
    events: int
    first_ms: int
    last_ms: int
    examples: Sequence[str]


class DeadActions:
    """The dead letters of one site."""

    def __init__(self, client: redis.Redis, site: str) -> None:
        self._dead, self._site = Dead(client, site), site

    def groups(self) -> list[Group]:
        """By error, the most frequent first."""
        return [
            Group(
                error, len(letters), letters[0].since_ms, letters[-1].since_ms,
                [subject(letter.payload) for letter in letters[:_EXAMPLES]],
            )
            for error, letters in self._dead.errors().items()
        ]  # fmt: skip

    def show(self, ident: str) -> Letter:
        """One of them; InvalidError if it is not there."""
        letter = self._dead.get(ident) if is_id(ident) else None
        if letter is None:
            raise InvalidError(Fault(ident, "dead", _missing(self._site)))
        return letter

    def chosen(self, choice: Choice) -> list[Letter]:
        """The letters of `choice`, oldest first.

        InvalidError if it names one that is not there, or more than one way of choosing, or none.
        """
        ways = bool(choice.ids) + (choice.error is not None) + choice.everything
        if ways != 1:
            raise InvalidError(Fault("ID", "dead", "give ids, or --error TEXT, or --all"))
        if choice.ids:
            return [self.show(ident) for ident in dict.fromkeys(choice.ids)]
        return list(self._dead.letters(error=choice.error))

    def retry(self, choice: Choice) -> Outcome:
        """Accept the chosen events again, as the newest."""
        ids = self._dead.retry([letter.id for letter in self.chosen(choice)])
        line = command("dead", "retry", *choice.words(), site=self._site)
        said = f"{counted(len(ids), 'event')} accepted again"
        return Outcome("dead retry", self._site, str(choice), said, line, len(ids), ids)

    def discard(self, choice: Choice, save: Save | None = None) -> Outcome:
        """Forget the chosen events for ever; first they are handed to `save`."""
        letters = self.chosen(choice)
        if save is not None:
            save(letter.payload for letter in letters)
        gone = self._dead.discard([letter.id for letter in letters])
        line = command("dead", "discard", *choice.words(), site=self._site)
        said = f"{counted(gone, 'event')} forgotten"
        return Outcome("dead discard", self._site, str(choice), said, line, gone)


def subject(payload: bytes) -> str:
    """What a stored event is about: its URL, else its id."""
    found = members(payload)
    return str(found.get("loc") or f"id {found.get('id', '')}")


def _missing(site: str) -> str:
    return f"no event that failed has this id; to see them: {command('dead', 'list', site=site)}"
