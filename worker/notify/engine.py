"""Interface of a search engine: requests, answers and the meaning of answers (PROTOCOL U5)."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

from pydantic import SecretStr

from shared.config.notify.engines import EngineSettings, secret_of
from shared.errors import BarredError, CredentialError, OutboundError, StoreError
from shared.telemetry.logs import logger
from worker.http.exchange import (
    AllowedHosts,
    Outbound,
    OutboundAnswer,
    OutboundRequest,
    excerpt,
    retry_after,
)

SHORTEST_SECRET = 8
"""Minimum characters of a secret that is masked: a shorter text may be part of any answer."""

_Config = TypeVar("_Config", bound=EngineSettings)

_log = logger("notify")


class NotifiedPage(NamedTuple):
    """A changed page; `live` if it is listed, with its current or last section."""

    loc: str
    live: bool
    section: str = ""


class AnswerVerdict(StrEnum):
    """Meaning of an answer for the pages of its request."""

    DONE = "done"
    PENDING = "pending"
    """Accepted; the engine has not verified the key yet."""
    BUSY = "too many"
    FAILED = "failed"
    """No answer, or a temporary error. Only BUSY and FAILED are retried."""
    REFUSED = "refused"
    """Invalid request, which is not repeated."""
    FORBIDDEN = "forbidden"
    """The engine accepts nothing until an administrator intervenes."""
    HELD = "held back"
    """Not sent: something is missing on this side."""


class NotificationOutcome(NamedTuple):
    """Meaning of one answer; `wait` in seconds, None if the engine did not say.

    `rejected` are single pages that the engine refused, each as it named them.
    """

    verdict: AnswerVerdict
    detail: str = ""
    status: int = 0
    wait: float | None = None
    rejected: tuple[str, ...] = ()

    @property
    def told(self) -> bool:
        """True if the engine has accepted the notification."""
        return self.verdict in {AnswerVerdict.DONE, AnswerVerdict.PENDING}


def _at_once() -> None:
    """Do nothing before a request."""


class Engine(ABC):
    """One search engine of one site."""

    most: ClassVar[int] = 1
    """Maximum number of pages in one request."""
    whole: ClassVar[bool] = False
    """True if the engine is notified of the site's sitemaps or feeds instead of pages."""
    files: ClassVar[bool] = False
    """True if it is notified of published files instead of pages."""

    def __init__(self, allowed: AllowedHosts, outbound: Outbound) -> None:
        self._allowed, self._outbound = allowed, outbound
        self._secrets: set[str] = set()

    @property
    @abstractmethod
    def endpoints(self) -> Sequence[str]:
        """Endpoints: the first is notified, the next while that one fails."""

    @abstractmethod
    def requests(self, pages: Sequence[NotifiedPage], endpoint: str) -> Sequence[OutboundRequest]:
        """Return the requests for `pages`, all accepted by `wants`, without the credentials of
        `sign`.
        """

    def wants(self, page: NotifiedPage) -> bool:  # noqa: ARG002  # most take all
        """Return True if the engine is to be notified of `page`."""
        return True

    def judge(self, answer: OutboundAnswer) -> NotificationOutcome:
        """Return the meaning of `answer`."""
        return by_status(answer)

    def sign(self, request: OutboundRequest) -> OutboundRequest:
        """Return the request with credentials; UnprovenError if they cannot be had.

        Raises CredentialError, OutboundError.
        """
        return request

    def check(self) -> NotificationOutcome | None:
        """Return the state of what the engine needs of this site; None if it cannot be checked."""
        return None

    def submit(
        self, pages: Sequence[NotifiedPage], endpoint: str, before: Callable[[], None] = _at_once
    ) -> NotificationOutcome:
        """Notify the engine of `pages`; `before` is called before each request.

        Only `before` may raise, StoreError for example.
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
        """Return the outcome of `send`, with errors as outcomes and secrets masked. Raises
        StoreError.
        """
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
        except Exception as error:  # noqa: BLE001  # backs off like a failing engine, not asked on
            _log.exception("answer of an engine not understood", engine=type(self).__name__)
            outcome = NotificationOutcome(
                AnswerVerdict.FAILED, f"not understood: {type(error).__name__}"
            )
        detail = outcome.detail
        for secret in self._secrets:
            detail = detail.replace(secret, "***")
        return outcome._replace(detail=detail)

    def ask(self, request: OutboundRequest) -> OutboundAnswer:
        """Send `request`; secrets in the answer are masked, whole or cut short (T30).

        Raises OutboundError; BarredError if the request may not be sent.
        """
        answer = self._outbound(request, self._allowed)
        body = answer.body
        for secret in self._secrets:
            if len(secret) >= SHORTEST_SECRET:
                body = body.replace(secret.encode(), b"***")
        return answer._replace(body=body)

    def secret(self, given: SecretStr) -> str:
        """Return the configured secret, which is masked in answers from now on.

        Raises CredentialError.
        """
        found = secret_of(given)
        self._secrets.add(found)
        return found


class ConfiguredEngine(Engine, Generic[_Config]):
    """One search engine of one site whose endpoints are the addresses of its table."""

    def __init__(self, config: _Config, allowed: AllowedHosts, outbound: Outbound) -> None:
        super().__init__(allowed, outbound)
        self._config = config

    @property
    def endpoints(self) -> Sequence[str]:
        """Endpoints in the configured order."""
        return self._config.addresses


class UnprovenError(Exception):
    """The identity provider issued no credentials."""

    def __init__(self, outcome: NotificationOutcome) -> None:
        super().__init__(outcome.detail)
        self.outcome = outcome


_REMEDY = {
    400: "the engine rejects the format",
    401: "the engine rejects the credentials",
    403: "the engine rejects the key or the credentials",
    404: "no such address, or the site is not verified there",
    405: "the method is not allowed: check the address",
    422: "the engine rejects these URLs: of another host, or not covered by the key",
}
_AGAIN = {408, 425}
_WRONG = {400, 413, 422}


def by_status(answer: OutboundAnswer) -> NotificationOutcome:
    """Return the meaning of an answer by its status alone (PROTOCOL U5).

    An unknown status pauses the engine: repeating the request would not be polite.
    """
    status, text = answer.status, excerpt(answer.body)
    said = _REMEDY.get(status, f"it answered {status}") + (f": {text}" if text else "")
    if status == 202:
        return NotificationOutcome(
            AnswerVerdict.PENDING, "accepted; the engine still has to verify the key", status
        )
    if 200 <= status < 300:
        return NotificationOutcome(AnswerVerdict.DONE, "", status)
    if status == 429:
        return NotificationOutcome(
            AnswerVerdict.BUSY, text or "too many requests", status, retry_after(answer.headers)
        )
    if status >= 500 or status in _AGAIN:
        return NotificationOutcome(AnswerVerdict.FAILED, said, status, retry_after(answer.headers))
    if 300 <= status < 400:
        said = "the engine redirects, which is not followed: check the address"
    return NotificationOutcome(
        AnswerVerdict.REFUSED if status in _WRONG else AnswerVerdict.FORBIDDEN, said, status
    )


def fields(body: bytes) -> dict[str, Any] | None:
    """Return the members of the JSON object in `body`; None if it is not one."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
