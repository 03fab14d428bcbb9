"""Bing Webmaster's SubmitUrlBatch: 500 URLs in a request, within the quota of the site."""

from __future__ import annotations

import json
from collections.abc import Sequence
from urllib.parse import quote

from shared.config.notify import engines
from shared.config.sites.site import Site
from worker.http.exchange import AllowedHosts, Outbound, OutboundAnswer, OutboundRequest, excerpt
from worker.notify.engine import (
    AnswerVerdict,
    ConfiguredEngine,
    NotificationOutcome,
    NotifiedPage,
    by_status,
    fields,
)

# ApiErrorCode of its documentation; a code in no set means an invalid request.
_INTERNAL = {1, 2, 15}
_THROTTLED = {4, 5}
_UNKNOWN_TO_IT = {3, 6, 10, 11, 13, 14, 16}
QUOTA_S = 6 * 3600.0


class Bing(ConfiguredEngine[engines.BingSettings]):
    """Bing, notified of every page."""

    most = 500

    def __init__(
        self, site: Site, config: engines.BingSettings, allowed: AllowedHosts, outbound: Outbound
    ) -> None:
        super().__init__(config, allowed, outbound)
        self._site = config.site or site.base.origin

    def requests(self, pages: Sequence[NotifiedPage], endpoint: str) -> Sequence[OutboundRequest]:
        """Return one POST."""
        told = {"siteUrl": self._site, "urlList": [page.loc for page in pages]}
        headers = {"Content-Type": "application/json; charset=utf-8"}
        return [OutboundRequest("POST", endpoint, endpoint, headers, json.dumps(told).encode())]

    def sign(self, request: OutboundRequest) -> OutboundRequest:
        """Add the key to the query. Raises CredentialError."""
        key = quote(self.secret(self._config.key), safe="")
        return request._replace(url=f"{request.url}?apikey={key}")

    def judge(self, answer: OutboundAnswer) -> NotificationOutcome:
        """Return the meaning by the code in the body, if there is one: also with status 200."""
        said = fields(answer.body)
        if said is None and answer.status == 200:
            return NotificationOutcome(AnswerVerdict.FAILED, "200 without its JSON", 200)
        code = (said or {}).get("ErrorCode")
        if not isinstance(code, int) or not code:
            return by_status(answer)
        detail = excerpt((said or {}).get("Message")) or f"error {code}"
        if code in _THROTTLED or "quota" in detail.lower():
            detail += "; set `daily` to the site's quota"
            return NotificationOutcome(AnswerVerdict.BUSY, detail, answer.status, QUOTA_S)
        verdict = AnswerVerdict.REFUSED
        if code in _INTERNAL:
            verdict = AnswerVerdict.FAILED
        elif code in _UNKNOWN_TO_IT:
            verdict = AnswerVerdict.FORBIDDEN
        return NotificationOutcome(verdict, detail, answer.status)
