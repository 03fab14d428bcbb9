"""Yandex Webmaster's recrawl queue: one URL in a request, within a daily quota."""

from __future__ import annotations

import json
from collections.abc import Sequence
from urllib.parse import quote

from shared.config.notify import engines
from worker.http.exchange import OutboundAnswer, OutboundRequest
from worker.notify.engine import (
    AnswerVerdict,
    ConfiguredEngine,
    NotificationOutcome,
    NotifiedPage,
    by_status,
)

QUOTA_S = 6 * 3600.0


class Yandex(ConfiguredEngine[engines.YandexSettings]):
    """Yandex, notified of every page."""

    def requests(self, pages: Sequence[NotifiedPage], endpoint: str) -> Sequence[OutboundRequest]:
        """Return a POST for each page."""
        host = quote(self._config.host_id, safe="")
        url = f"{endpoint}/user/{self._config.user_id}/hosts/{host}/recrawl/queue"
        headers = {"Content-Type": "application/json; charset=utf-8"}
        return [
            OutboundRequest("POST", url, url, headers, json.dumps({"url": page.loc}).encode())
            for page in pages
        ]

    def sign(self, request: OutboundRequest) -> OutboundRequest:
        """Add the token. Raises CredentialError."""
        token = f"OAuth {self.secret(self._config.token)}"
        return request._replace(headers={**request.headers, "Authorization": token})

    def judge(self, answer: OutboundAnswer) -> NotificationOutcome:
        """Return the meaning: 202 is final; 409 says that the page is in the queue already."""
        outcome = by_status(answer)
        if outcome.told:
            return NotificationOutcome(AnswerVerdict.DONE, "", answer.status)
        if answer.status == 409:
            return NotificationOutcome(AnswerVerdict.DONE, "it is queued already", 409)
        if outcome.verdict is AnswerVerdict.BUSY and outcome.wait is None:
            return outcome._replace(wait=QUOTA_S)
        return outcome
