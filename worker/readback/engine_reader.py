"""Interface of an engine that is read: its sitemaps, and the pages it knows."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

from shared.domain.index_status import IndexStatus
from shared.errors import OutboundError
from shared.store.readback.reading_state import ReadSitemap
from worker.http.exchange import OutboundAnswer, OutboundRequest
from worker.notify.engine import AnswerVerdict, Engine, NotificationOutcome

Spend = Callable[[], None]
"""Called before each request: takes it from the budget; raises ReadingOverError if that is spent.
"""


_LONGEST = 2_048


class UnreadError(OutboundError):
    """The engine gave no answer that can be read; `outcome` is the meaning of what it said."""

    def __init__(self, outcome: NotificationOutcome) -> None:
        super().__init__(outcome.detail or f"it answered {outcome.status}")
        self.outcome = outcome


class ReadingOverError(Exception):
    """The budget of this minute or day is spent."""


class EngineReader(ABC):
    """One engine that is read; `account` has its credentials, and knows what its answers mean."""

    asked: ClassVar[bool] = True
    """True if it is asked about one page at a time; False if it only lists pages of its choice."""

    def __init__(self, account: Engine, spend: Spend = lambda: None) -> None:
        self._account, self.spend = account, spend

    @abstractmethod
    def sitemaps(self) -> list[ReadSitemap]:
        """Return what the engine knows of the sitemaps. Raises UnreadError, ReadingOverError."""

    def page(self, loc: str) -> IndexStatus:
        """Return what the engine says of one page. Raises UnreadError, ReadingOverError."""
        raise NotImplementedError

    def pages(self) -> Iterator[tuple[str, IndexStatus]]:
        """Yield the pages that the engine lists, a page perhaps more than once. Raises UnreadError,
        ReadingOverError.
        """
        return iter(())

    def read(self, request: OutboundRequest, query: str = "") -> Any:
        """Return the JSON that the engine answers to `request`, with `query` appended to the
        address once it is signed. Raises UnreadError, ReadingOverError.
        """
        answers: list[OutboundAnswer] = []
        self.spend()

        def send() -> NotificationOutcome:
            signed = self._account.sign(request)
            answers.append(self._account.ask(signed._replace(url=signed.url + query)))
            return self._account.judge(answers[0])

        outcome = self._account.heard(send)
        if not outcome.told:
            raise UnreadError(outcome)
        try:
            return json.loads(answers[0].body)
        except (ValueError, RecursionError):
            raise unclear(outcome.status) from None


def unclear(status: int = 200) -> UnreadError:
    """Return the error for an answer that has not the documented form."""
    said = "its answer has not the documented form"
    return UnreadError(NotificationOutcome(AnswerVerdict.FAILED, said, status))


def members(found: object) -> dict[str, Any]:
    """Return a JSON object. Raises UnreadError if `found` is none."""
    if not isinstance(found, dict):
        raise unclear()
    return found


def objects(found: object) -> list[dict[str, Any]]:
    """Return the objects of a JSON array, which may be missing. Raises UnreadError."""
    if found is None:
        return []
    if not isinstance(found, list):
        raise unclear()
    return [members(each) for each in found]


def address(found: object) -> str:
    """Return an address that an engine sent, without what no address has; empty if it is none."""
    return "".join(c for c in found[:_LONGEST] if c.isprintable()) if isinstance(found, str) else ""


def number(found: object) -> int | None:
    """Return a number, which Google sends as a string; None if it is none."""
    try:
        return int(found) if isinstance(found, int | str) else None
    except ValueError:
        return None
