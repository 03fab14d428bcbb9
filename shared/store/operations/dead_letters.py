"""Dead letters of a site: events that failed five times, kept until retried or discarded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import redis

from shared.domain.page_record import Arrival
from shared.store.client import Scripts, answering
from shared.store.keys import keys_of
from shared.store.streams import Entry, backwards, forwards

_STEP = 500


class DeadLetter(NamedTuple):
    """One dead letter: `id` in the dead letters, `event` its id in the inbox, the error and the
    number of attempts; `payload` as the inbox stores it.
    """

    id: str
    event: str
    error: str
    tries: int
    payload: bytes

    @property
    def since_ms(self) -> int:
        """Time it became a dead letter (ms since 1970)."""
        return Arrival.of(self.id).ms


class DeadLetters:
    """Dead letters of one site."""

    def __init__(self, client: redis.Redis, site: str) -> None:
        self._client, self._keys = client, keys_of(site)
        self._scripts = Scripts(client)

    def __len__(self) -> int:
        """Return the number of dead letters."""
        with answering():
            return int(self._client.xlen(self._keys.dead))

    def letters(self, *, error: str | None = None, after: str = "") -> Iterator[DeadLetter]:
        """Return those that failed with `error` (None: all), oldest first, after the id `after`."""
        return _of(error, forwards(self._client, self._keys.dead, after=after))

    def latest(self, *, error: str | None = None, before: str = "") -> Iterator[DeadLetter]:
        """Return the same, newest first, before the id `before`."""
        return _of(error, backwards(self._client, self._keys.dead, before=before))

    def of_event(self, ident: str) -> DeadLetter | None:
        """Return the dead letter of the event with this id; None if there is none."""
        accepted = max(0, int(ident.partition("-")[0]) - 1)  # its dead letter is later
        found = self.letters(after=f"{accepted}-0")
        return next((letter for letter in found if letter.event == ident), None)

    def get(self, ident: str) -> DeadLetter | None:
        """Return the dead letter with this id; None if there is none."""
        with answering():
            rows: Any = self._client.xrange(self._keys.dead, ident, ident)
        return letter_of(rows[0][0].decode(), rows[0][1]) if rows else None

    def retry(self, idents: Sequence[str]) -> list[str]:
        """Accept these events again, as the newest; return the new ids, without missing ones."""
        keys, ids = [self._keys.dead, self._keys.inbox], []
        for at in range(0, len(idents), _STEP):
            ids += self._scripts("operations/requeue_dead", keys, *idents[at : at + _STEP])
        return [ident.decode() for ident in ids]

    def discard(self, idents: Sequence[str]) -> int:
        """Delete these dead letters; return how many existed."""
        gone = 0
        with answering():
            for at in range(0, len(idents), _STEP):
                gone += int(self._client.xdel(self._keys.dead, *idents[at : at + _STEP]))
        return gone


def _of(error: str | None, entries: Iterator[Entry]) -> Iterator[DeadLetter]:
    letters = (letter_of(ident, fields) for ident, fields in entries)
    return (letter for letter in letters if error is None or letter.error == error)


def letter_of(ident: str, fields: dict[bytes, bytes]) -> DeadLetter:
    """Return the dead letter of one entry of the stream."""
    tries = fields.get(b"tries", b"")
    return DeadLetter(
        ident, fields.get(b"id", b"").decode(errors="replace"),
        fields.get(b"error", b"").decode(errors="replace"), int(tries) if tries.isdigit() else 0,
        fields.get(b"e", b""),
    )  # fmt: skip
