"""What an engine is given, what it may answer, and what each answer means (PROTOCOL U5)."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from enum import StrEnum
from typing import Any, ClassVar, NamedTuple

from pydantic import SecretStr

from shared.config.notify.engines import secret_of
from shared.errors import BarredError, CredentialError, OutboundError, StoreError
from shared.logs import logger
from worker.http.exchange import AllowedHosts, Outbound, OutboundAnswer, OutboundRequest, excerpt

LONGEST_WAIT_S = 24 * 3600
"""However long an engine asks us to wait."""

SHORTEST_SECRET = 8
"""Characters: what is shorter may be part of any answer."""

_log = logger("notify")


class NotifiedPage(NamedTuple):
    """A page whose content changed: whether it is listed now, and in which section it is or was."""

    loc: str
    live: bool
    section: str = ""


class AnswerVerdict(StrEnum):
    """What an answer means for the pages it is about."""

    DONE = "done"
    PENDING = "pending"
    """Taken; the engine has not looked at our key yet."""
    BUSY = "too many"
    FAILED = "failed"
    """No answer, or one that says to come again: tried again, and these two alone."""
    REFUSED = "refused"
    """Wrong, and wrong again if it is repeated."""
    FORBIDDEN = "forbidden"
    """Nothing is taken from us until somebody has seen to it."""
    HELD = "held back"
    """Not sent: something is missing on our side."""


class NotificationOutcome(NamedTuple):
    """The meaning of one answer; `wait` in seconds, None if the engine did not say.

    `rejected` are single pages that the engine did not want, each as it named them.
    """

    verdict: AnswerVerdict
    detail: str = ""
    status: int = 0
    wait: float | None = None
    rejected: tuple[str, ...] = ()

    @property
    def told(self) -> bool:
        """Whether the engine has it."""
        return self.verdict in {AnswerVerdict.DONE, AnswerVerdict.PENDING}


def _at_once() -> None:
    """Before a request nothing needs to be done."""


class Engine(ABC):
    """One engine of one site."""

    most: ClassVar[int] = 1
    """Pages of one request."""
    whole: ClassVar[bool] = False
    """Told of the site's sitemaps or feeds, whichever pages changed."""

    def __init__(self, allowed: AllowedHosts, outbound: Outbound) -> None:
        self._allowed, self._outbound = allowed, outbound
        self._secrets: set[str] = set()

    @property
    @abstractmethod
    def endpoints(self) -> Sequence[str]:
        """Where it is told: at the first, at the next while that one fails."""

    @abstractmethod
    def requests(self, pages: Sequence[NotifiedPage], endpoint: str) -> Sequence[OutboundRequest]:
        """What is sent of `pages`, all of which it `wants`, without what `sign` adds."""

    def wants(self, page: NotifiedPage) -> bool:  # noqa: ARG002  # most take all
        """Whether it is to be told of `page`."""
        return True

    def judge(self, answer: OutboundAnswer) -> NotificationOutcome:
        """What `answer` means."""
        return by_status(answer)

    def sign(self, request: OutboundRequest) -> OutboundRequest:
        """The request with what proves who we are; UnprovenError if there is no getting it."""
        return request

    def check(self) -> NotificationOutcome | None:
        """Whether what it needs of us is in place; None if that cannot be seen."""
        return None

    def tell(
        self, pages: Sequence[NotifiedPage], endpoint: str, before: Callable[[], None] = _at_once
    ) -> NotificationOutcome:
        """Tell it of `pages`; nothing is raised but by `before`, called before each request.

        That may raise StoreError.
        """

        def send() -> NotificationOutcome:
            outcome = NotificationOutcome(AnswerVerdict.DONE)
            for request in self.requests(pages, endpoint):
                before()
                outcome = self.judge(self.ask(self.sign(request)))
                if not outcome.told:
                    break
            return outcome

        return self.heard(send)

    def heard(self, send: Callable[[], NotificationOutcome]) -> NotificationOutcome:
        """What `send` comes to, with the errors of this package as outcomes and no secret in it."""
        try:
            outcome = send()
        except UnprovenError as error:
            outcome = error.outcome
        except (CredentialError, BarredError) as error:
            outcome = NotificationOutcome(AnswerVerdict.HELD, str(error))
        except OutboundError as error:
            outcome = NotificationOutcome(AnswerVerdict.FAILED, str(error))
        except StoreError:
            raise
        except Exception as error:  # noqa: BLE001  # left alone like one that fails, not asked on
            _log.exception("an engine was not understood", engine=type(self).__name__)
            outcome = NotificationOutcome(
                AnswerVerdict.FAILED, f"not understood: {type(error).__name__}"
            )
        detail = outcome.detail
        for secret in self._secrets:
            detail = detail.replace(secret, "***")
        return outcome._replace(detail=detail)

    def ask(self, request: OutboundRequest) -> OutboundAnswer:
        """Send `request`; what comes back repeats no secret, whole or cut short (T30)."""
        answer = self._outbound(request, self._allowed)
        body = answer.body
        for secret in self._secrets:
            if len(secret) >= SHORTEST_SECRET:
                body = body.replace(secret.encode(), b"***")
        return answer._replace(body=body)

    def secret(self, given: SecretStr) -> str:
        """The secret that is meant, which from now on is taken out of what the engine says."""
        found = secret_of(given)
        self._secrets.add(found)
        return found


class UnprovenError(Exception):
    """Whoever says who we are did not."""

    def __init__(self, outcome: NotificationOutcome) -> None:
        super().__init__(outcome.detail)
        self.outcome = outcome


_REMEDY = {
    400: "it says the format is wrong",
    401: "it does not take these credentials",
    403: "it does not take the key or the credentials",
    404: "there is nothing at this address, or the site is not verified there",
    405: "it does not take this method: is the address right?",
    422: "it says these URLs are not of this host, or do not fit the key",
}
_AGAIN = {408, 425}
_WRONG = {400, 413, 422}


def by_status(answer: OutboundAnswer) -> NotificationOutcome:
    """What an answer means by its status alone (PROTOCOL U5).

    Anything unknown pauses the engine: to repeat it would not be polite.
    """
    status, text = answer.status, excerpt(answer.body)
    said = _REMEDY.get(status, f"it answered {status}") + (f": {text}" if text else "")
    if status == 202:
        return NotificationOutcome(
            AnswerVerdict.PENDING, "taken; the key is still to be checked", status
        )
    if 200 <= status < 300:
        return NotificationOutcome(AnswerVerdict.DONE, "", status)
    if status == 429:
        return NotificationOutcome(
            AnswerVerdict.BUSY, text or "too many requests", status, retry_after(answer)
        )
    if status >= 500 or status in _AGAIN:
        return NotificationOutcome(AnswerVerdict.FAILED, said, status, retry_after(answer))
    if 300 <= status < 400:
        said = "it redirects, which is never followed: has its address changed?"
    return NotificationOutcome(
        AnswerVerdict.REFUSED if status in _WRONG else AnswerVerdict.FORBIDDEN, said, status
    )


def retry_after(answer: OutboundAnswer, now: datetime | None = None) -> float | None:
    """Seconds that `Retry-After` asks for, within a day; None if it does not, or not in earnest."""
    text = answer.headers.get("retry-after", "").strip()
    if text.isascii() and text.isdigit():
        seconds = float(text[:9])
    else:
        try:
            at = parsedate_to_datetime(text)
            at = at.replace(tzinfo=at.tzinfo or UTC)
            seconds = (at - (now or datetime.now(UTC))).total_seconds()
        except (ValueError, OverflowError):
            return None
    return min(max(seconds, 0.0), LONGEST_WAIT_S)


def fields(body: bytes) -> dict[str, Any] | None:
    """The members of the JSON object that `body` is; None if it is none."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
