"""Content delivery networks: told which published files changed, so that they fetch them anew.

A purge repeated is harmless, so every failure is tried again as for any engine.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Sequence
from typing import Generic, TypeVar
from urllib.parse import quote, urlsplit

from shared.config.notify import cdns
from shared.sitemap.xml_text import escape
from worker.http.exchange import OutboundAnswer, OutboundRequest
from worker.notify.engine import (
    AnswerVerdict,
    ConfiguredEngine,
    NotificationOutcome,
    NotifiedPage,
    by_status,
    fields,
)
from worker.notify.engines import sigv4

_IN_PROGRESS = b"<Code>TooManyInvalidationsInProgress</Code>"
_THROTTLED = b"<Code>Throttling"


_Config = TypeVar("_Config", bound=cdns.CdnSettings)


class Cdn(ConfiguredEngine[_Config], Generic[_Config]):
    """One network of one site; its pages are files."""

    files = True

    def judge(self, answer: OutboundAnswer) -> NotificationOutcome:
        """Return the meaning: every success is final."""
        outcome = by_status(answer)
        return outcome._replace(verdict=AnswerVerdict.DONE) if outcome.told else outcome


class Cloudflare(Cdn[cdns.CloudflareSettings]):
    """Cloudflare: 100 URLs in a request, on every plan; 800 URLs a second on the smallest."""

    most = 100

    def requests(self, pages: Sequence[NotifiedPage], endpoint: str) -> Sequence[OutboundRequest]:
        """Return one POST."""
        url = f"{endpoint}/zones/{self._config.zone}/purge_cache"
        body = json.dumps({"files": [page.loc for page in pages]}).encode()
        return [OutboundRequest("POST", url, url, {"Content-Type": "application/json"}, body)]

    def sign(self, request: OutboundRequest) -> OutboundRequest:
        """Add the token. Raises CredentialError."""
        token = f"Bearer {self.secret(self._config.token)}"
        return request._replace(headers={**request.headers, "Authorization": token})

    def judge(self, answer: OutboundAnswer) -> NotificationOutcome:
        """Return the meaning: an answer 200 may say `success: false`."""
        outcome, said = super().judge(answer), fields(answer.body) or {}
        if outcome.told and said.get("success") is not True:
            return NotificationOutcome(
                AnswerVerdict.FAILED, f"it did not purge: {said.get('errors')}"[:200], answer.status
            )
        return outcome


class Fastly(Cdn[cdns.FastlySettings]):
    """Fastly: one URL in a request; 100,000 purges an hour."""

    most = 20

    def requests(self, pages: Sequence[NotifiedPage], endpoint: str) -> Sequence[OutboundRequest]:
        """Return a POST for each file."""
        soft = {"Fastly-Soft-Purge": "1"} if self._config.soft else {}
        urls = [f"{endpoint}/purge/{page.loc.partition('://')[2]}" for page in pages]
        return [OutboundRequest("POST", url, url, soft) for url in urls]

    def sign(self, request: OutboundRequest) -> OutboundRequest:
        """Add the token. Raises CredentialError."""
        token = self.secret(self._config.token)
        return request._replace(headers={**request.headers, "Fastly-Key": token})


class CloudFront(Cdn[cdns.CloudFrontSettings]):
    """CloudFront: an invalidation of at most 3,000 paths in progress, signed with Signature 4."""

    most = 1_000

    def requests(self, pages: Sequence[NotifiedPage], endpoint: str) -> Sequence[OutboundRequest]:
        """Return one POST; its reference is new for each request, so that none is taken for a
        repetition of another.
        """
        url = f"{endpoint}/2020-05-31/distribution/{self._config.distribution}/invalidation"
        paths = [escape(urlsplit(page.loc).path) for page in pages]
        seed = f"{time.time_ns()} {paths}"
        body = (
            '<InvalidationBatch xmlns="http://cloudfront.amazonaws.com/doc/2020-05-31/">'
            f"<CallerReference>{hashlib.sha256(seed.encode()).hexdigest()}</CallerReference>"
            f"<Paths><Items>{''.join(f'<Path>{path}</Path>' for path in paths)}</Items>"
            f"<Quantity>{len(paths)}</Quantity></Paths></InvalidationBatch>"
        )
        return [OutboundRequest("POST", url, url, {"Content-Type": "text/xml"}, body.encode())]

    def sign(self, request: OutboundRequest) -> OutboundRequest:
        """Add a signature of now. Raises CredentialError."""
        key = self.secret(self._config.access_key_id), self.secret(self._config.secret_access_key)
        return sigv4.signed(request, *key, "us-east-1", "cloudfront", time.time())

    def judge(self, answer: OutboundAnswer) -> NotificationOutcome:
        """Return the meaning: too many at once are refused with 400, and tried again."""
        busy = _IN_PROGRESS in answer.body or _THROTTLED in answer.body
        if answer.status == 400 and busy:
            return NotificationOutcome(AnswerVerdict.BUSY, "too many invalidations", 400)
        return super().judge(answer)


class Purge(Cdn[cdns.PurgeSettings]):
    """Any cache: a request for each file."""

    most = 20

    @property
    def endpoints(self) -> Sequence[str]:
        """The one endpoint, as configured."""
        return (self._config.url,)

    def requests(self, pages: Sequence[NotifiedPage], endpoint: str) -> Sequence[OutboundRequest]:
        """Return a request for each file: to its own address, or with that in another one."""
        own = endpoint == cdns.URL
        urls = [
            page.loc if own else endpoint.replace(cdns.URL, quote(page.loc, safe=""))
            for page in pages
        ]
        return [OutboundRequest(self._config.method, url, url) for url in urls]

    def sign(self, request: OutboundRequest) -> OutboundRequest:
        """Add the token, if there is one. Raises CredentialError."""
        if not self._config.token.get_secret_value():
            return request
        token = f"Bearer {self.secret(self._config.token)}"
        return request._replace(headers={**request.headers, "Authorization": token})

    def judge(self, answer: OutboundAnswer) -> NotificationOutcome:
        """Return the meaning: a file that the cache does not hold needs no purge."""
        if answer.status in {404, 410}:
            return NotificationOutcome(AnswerVerdict.DONE, "it was not cached", answer.status)
        return super().judge(answer)
