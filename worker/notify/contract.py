"""What an engine is given, what it may answer, and what each answer means (PROTOCOL U5)."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from enum import StrEnum
from typing import Any, ClassVar, NamedTuple

from pydantic import SecretStr

from shared.errors import BarredError, CredentialError, OutboundError, StoreError
from shared.notify.engines import secret_of
from shared.telemetry import logger

LONGEST_WAIT_S = 24 * 3600
"""However long an engine asks us to wait."""

SHORTEST_SECRET = 8
"""Characters: what is shorter may be part of any answer."""

_log = logger("notify")


class Page(NamedTuple):
    """A page whose content changed: whether it is listed now, and in which section it is or was."""

    loc: str
    live: bool
    section: str = ""


class Request(NamedTuple):
    """What is sent; `shown` is the address without secrets, for people and logs.

    `partly`: of an answer that is too long the beginning is wanted, by default it is an error.
    """

    method: str
    url: str
    shown: str
    headers: Mapping[str, str] = {}
    body: bytes = b""
    partly: bool = False


class Answer(NamedTuple):
    """What came back: names of headers in lower case, several of one name joined by commas, at most
    64 KiB of body.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes


class Verdict(StrEnum):
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


class Outcome(NamedTuple):
    """The meaning of one answer; `wait` in seconds, None if the engine did not say.

    `rejected` are single pages that the engine did not want, each as it named them.
    """

    verdict: Verdict
    detail: str = ""
    status: int = 0
    wait: float | None = None
    rejected: tuple[str, ...] = ()

    @property
    def told(self) -> bool:
        """Whether the engine has it."""
        return self.verdict in {Verdict.DONE, Verdict.PENDING}


class Allowed(NamedTuple):
    """Where requests may go: `hosts`; `http` without TLS; `private` to networks of one's own."""

    hosts: frozenset[str]
    private: bool = False
    http: bool = False


Outbound = Callable[[Request, Allowed], Answer]
"""Sends a request; raises OutboundError, of which BarredError if it is not allowed to leave."""


def _at_once() -> None:
    """Before a request nothing needs to be done."""


class Teller(ABC):
    """One engine of one site."""

    most: ClassVar[int] = 1
    """Pages of one request."""
    whole: ClassVar[bool] = False
    """Told of the site's sitemaps or feeds, whichever pages changed."""

    def __init__(self, allowed: Allowed, outbound: Outbound) -> None:
        self._allowed, self._outbound = allowed, outbound
        self._secrets: set[str] = set()

    @property
    @abstractmethod
    def endpoints(self) -> Sequence[str]:
        """Where it is told: at the first, at the next while that one fails."""

    @abstractmethod
    def requests(self, pages: Sequence[Page], endpoint: str) -> Sequence[Request]:
        """What is sent of `pages`, all of which it `wants`, without what `sign` adds."""

    def wants(self, page: Page) -> bool:  # noqa: ARG002  # most take all
        """Whether it is to be told of `page`."""
        return True

    def judge(self, answer: Answer) -> Outcome:
        """What `answer` means."""
        return by_status(answer)

    def sign(self, request: Request) -> Request:
        """The request with what proves who we are; UnprovenError if there is no getting it."""
        return request

    def check(self) -> Outcome | None:
        """Whether what it needs of us is in place; None if that cannot be seen."""
        return None

    def tell(
        self, pages: Sequence[Page], endpoint: str, before: Callable[[], None] = _at_once
    ) -> Outcome:
        """Tell it of `pages`; nothing is raised but by `before`, called before each request.

        That may raise StoreError.
        """

        def send() -> Outcome:
            outcome = Outcome(Verdict.DONE)
            for request in self.requests(pages, endpoint):
                before()
                outcome = self.judge(self.ask(self.sign(request)))
                if not outcome.told:
                    break
            return outcome

        return self.heard(send)

    def heard(self, send: Callable[[], Outcome]) -> Outcome:
        """What `send` comes to, with the errors of this package as outcomes and no secret in it."""
        try:
            outcome = send()
        except UnprovenError as error:
            outcome = error.outcome
        except (CredentialError, BarredError) as error:
            outcome = Outcome(Verdict.HELD, str(error))
        except OutboundError as error:
            outcome = Outcome(Verdict.FAILED, str(error))
        except StoreError:
            raise
        except Exception as error:  # noqa: BLE001  # left alone like one that fails, not asked on
            _log.exception("an engine was not understood", engine=type(self).__name__)
            outcome = Outcome(Verdict.FAILED, f"not understood: {type(error).__name__}")
        detail = outcome.detail
        for secret in self._secrets:
            detail = detail.replace(secret, "***")
        return outcome._replace(detail=detail)

    def ask(self, request: Request) -> Answer:
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

    def __init__(self, outcome: Outcome) -> None:
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


def by_status(answer: Answer) -> Outcome:
    """What an answer means by its status alone (PROTOCOL U5).

    Anything unknown pauses the engine: to repeat it would not be polite.
    """
    status, text = answer.status, excerpt(answer.body)
    said = _REMEDY.get(status, f"it answered {status}") + (f": {text}" if text else "")
    if status == 202:
        return Outcome(Verdict.PENDING, "taken; the key is still to be checked", status)
    if 200 <= status < 300:
        return Outcome(Verdict.DONE, "", status)
    if status == 429:
        return Outcome(Verdict.BUSY, text or "too many requests", status, retry_after(answer))
    if status >= 500 or status in _AGAIN:
        return Outcome(Verdict.FAILED, said, status, retry_after(answer))
    if 300 <= status < 400:
        said = "it redirects, which is never followed: has its address changed?"
    return Outcome(Verdict.REFUSED if status in _WRONG else Verdict.FORBIDDEN, said, status)


def retry_after(answer: Answer, now: datetime | None = None) -> float | None:
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


def excerpt(said: object) -> str:
    """The beginning of what an engine said, on one line, for people; empty if it is no text."""
    if not isinstance(said, bytes | str):
        return ""
    text = said[:1000].decode("utf-8", "replace") if isinstance(said, bytes) else said[:1000]
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())[:200]


def fields(body: bytes) -> dict[str, Any] | None:
    """The members of the JSON object that `body` is; None if it is none."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
