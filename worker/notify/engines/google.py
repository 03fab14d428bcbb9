"""Google: access token of a service account, sitemaps in Search Console, and the Indexing API."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import quote, urlencode

from shared.config.notify import engines
from shared.config.sites.site import Site
from shared.errors import CredentialError
from worker.http.exchange import AllowedHosts, Outbound, OutboundAnswer, OutboundRequest
from worker.notify.engine import (
    AnswerVerdict,
    Engine,
    NotificationOutcome,
    NotifiedPage,
    UnprovenError,
    by_status,
    fields,
)

TOKEN_S = 3600
_GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer"
_QUOTA = (b"quotaExceeded", b"ateLimitExceeded", b"RESOURCE_EXHAUSTED")


class _Google(Engine):
    """Shared part: RFC 7523, a signed claim for a token that is valid for an hour."""

    scope = ""

    def __init__(
        self, config: engines.GoogleSettings, allowed: AllowedHosts, outbound: Outbound
    ) -> None:
        super().__init__(allowed, outbound)
        self._google = config
        self._token, self._until = "", 0.0

    @property
    def endpoints(self) -> Sequence[str]:
        """The one endpoint."""
        return (self._google.endpoint,)

    def sign(self, request: OutboundRequest) -> OutboundRequest:
        """Add the Bearer token. Raises CredentialError, OutboundError, UnprovenError."""
        if time.time() > self._until:
            self._token, self._until = self._fetch_token(), time.time() + TOKEN_S / 2
            self._secrets.add(self._token)
        headers = {**request.headers, "Authorization": f"Bearer {self._token}"}
        return request._replace(headers=headers)

    def judge(self, answer: OutboundAnswer) -> NotificationOutcome:
        """Return the meaning by status; 403 for a quota is not a refusal."""
        outcome = by_status(answer)
        if answer.status == 401:
            self._until = 0.0
        if answer.status == 403 and any(word in answer.body for word in _QUOTA):
            return outcome._replace(verdict=AnswerVerdict.BUSY)
        return outcome._replace(verdict=AnswerVerdict.DONE) if outcome.told else outcome

    def check(self) -> NotificationOutcome:
        """Check that the service account gets a token."""

        def send() -> NotificationOutcome:
            self._until = 0.0
            self.sign(OutboundRequest("POST", "", ""))
            return NotificationOutcome(AnswerVerdict.DONE, "the service account gets a token")

        return self.heard(send)

    def _fetch_token(self) -> str:
        import jwt  # 60 ms at the start of a worker or command, not needed without Google

        account, at = self._account(), self._google.token_endpoint
        now = int(time.time())
        claim = {
            "iss": account["client_email"], "scope": self.scope, "aud": at, "iat": now,
            "exp": now + TOKEN_S,
        }  # fmt: skip
        try:
            signed = jwt.encode(
                claim, account["private_key"], "RS256", {"kid": account.get("private_key_id", "")}
            )
        except (jwt.PyJWTError, ValueError, TypeError):
            raise CredentialError("the private_key of the service account is invalid") from None
        self._secrets.add(signed)
        body = urlencode({"grant_type": _GRANT, "assertion": signed}).encode()
        form = {"Content-Type": "application/x-www-form-urlencoded"}
        answer = self.ask(OutboundRequest("POST", at, at, form, body))
        outcome = by_status(answer)
        if outcome.verdict in {AnswerVerdict.REFUSED, AnswerVerdict.FORBIDDEN}:
            said = f"no token for the service account: {outcome.detail}"
            raise UnprovenError(NotificationOutcome(AnswerVerdict.FORBIDDEN, said, answer.status))
        token = (fields(answer.body) or {}).get("access_token") if outcome.told else None
        if not isinstance(token, str) or not token:
            said = f"no token for the service account: {outcome.detail or 'none was sent'}"
            verdict = AnswerVerdict.FAILED if outcome.told else outcome.verdict
            raise UnprovenError(NotificationOutcome(verdict, said, answer.status, outcome.wait))
        return token

    def _account(self) -> dict[str, Any]:
        account = fields(self.secret(self._google.credentials).encode()) or {}
        if not all(isinstance(account.get(name), str) for name in ("client_email", "private_key")):
            raise CredentialError("the credentials are not a JSON key of a service account")
        self._secrets.add(account["private_key"])
        return account


class SearchConsole(_Google):
    """sitemaps.submit: submits the sitemaps that robots.txt names again."""

    most, whole = 10_000, True
    scope = "https://www.googleapis.com/auth/webmasters"

    def __init__(
        self,
        site: Site,
        config: engines.SearchConsoleSettings,
        allowed: AllowedHosts,
        outbound: Outbound,
        sitemaps: Callable[[], Sequence[str]],
    ) -> None:
        super().__init__(config, allowed, outbound)
        self._property, self._sitemaps = config.property or site.base_url, sitemaps

    def requests(self, pages: Sequence[NotifiedPage], endpoint: str) -> Sequence[OutboundRequest]:  # noqa: ARG002
        """Return a PUT for each sitemap."""
        where = f"{endpoint}/sites/{quote(self._property, safe='')}/sitemaps/"
        urls = [where + quote(url, safe="") for url in self._sitemaps()]
        return [OutboundRequest("PUT", url, url) for url in urls]


class GoogleIndexing(_Google):
    """urlNotifications.publish: job postings and livestreams, one page in a request."""

    scope = "https://www.googleapis.com/auth/indexing"

    def __init__(
        self, config: engines.GoogleIndexingSettings, allowed: AllowedHosts, outbound: Outbound
    ) -> None:
        super().__init__(config, allowed, outbound)
        self.sections = frozenset(config.sections)

    def wants(self, page: NotifiedPage) -> bool:
        """Return True for pages of the configured sections."""
        return page.section in self.sections

    def requests(self, pages: Sequence[NotifiedPage], endpoint: str) -> Sequence[OutboundRequest]:
        """Return a POST for each page."""
        return [
            OutboundRequest(
                "POST", endpoint, endpoint, {"Content-Type": "application/json"},
                json.dumps(
                    {"url": page.loc, "type": "URL_UPDATED" if page.live else "URL_DELETED"}
                ).encode(),
            )
            for page in pages
        ]  # fmt: skip
