"""IndexNow (PROTOCOL U3-U8): 10,000 changed or removed URLs in a request, one key for the host."""

from __future__ import annotations

import json
from collections.abc import Sequence
from urllib.parse import urlsplit

from shared.config.notify import engines
from shared.config.sites.site import Site
from worker.http.exchange import AllowedHosts, Outbound, OutboundAnswer, OutboundRequest
from worker.notify.engine import AnswerVerdict, ConfiguredEngine, NotificationOutcome, NotifiedPage

MOST_BYTES = 4 * 1024 * 1024
"""Maximum bytes of URLs in a request, which must end in five seconds: 10,000 of 400 characters."""

_TYPE = {"Content-Type": "application/json; charset=utf-8"}


class IndexNow(ConfiguredEngine[engines.IndexNowSettings]):
    """IndexNow, notified of every page; it fetches the key file to verify the host. Its
    endpoints share notifications (PROTOCOL U6)."""

    most = 10_000

    def __init__(
        self,
        site: Site,
        config: engines.IndexNowSettings,
        allowed: AllowedHosts,
        outbound: Outbound,
    ) -> None:
        super().__init__(config, allowed, outbound)
        self._host = site.base.origin.partition("://")[2]
        self.key_url = config.key_location or site.base.url(f"{config.key}.txt")

    def requests(self, pages: Sequence[NotifiedPage], endpoint: str) -> Sequence[OutboundRequest]:
        """Return one POST; several for very long URLs."""
        chunks, size = [list[str]()], 0
        for page in pages:
            size += len(page.loc)
            if size > MOST_BYTES:
                chunks.append([])
                size = len(page.loc)
            chunks[-1].append(page.loc)
        return [self._request(chunk, endpoint) for chunk in chunks]

    def _request(self, locs: list[str], endpoint: str) -> OutboundRequest:
        told = {
            "host": self._host,
            "key": self._config.key,
            "keyLocation": self.key_url,
            "urlList": locs,
        }
        return OutboundRequest("POST", endpoint, endpoint, _TYPE, json.dumps(told).encode())

    def check(self) -> NotificationOutcome:
        """Check that the key file is served as the engines will see it (RELIABILITY T31)."""
        host = urlsplit(self.key_url).hostname or ""
        ours = AllowedHosts(frozenset({host}), self._config.allow_private, http=True)

        def send() -> NotificationOutcome:
            answer = self._outbound(OutboundRequest("GET", self.key_url, self.key_url), ours)
            return self._seen(answer)

        return self.heard(send)

    def _seen(self, answer: OutboundAnswer) -> NotificationOutcome:
        if answer.status == 200 and answer.body.strip() == self._config.key.encode():
            return NotificationOutcome(
                AnswerVerdict.DONE, f"the key is served at {self.key_url}", 200
            )
        what = f"answers {answer.status}" if answer.status != 200 else "holds something else"
        detail = f"{self.key_url} {what}: it must be served with the key and nothing else"
        return NotificationOutcome(AnswerVerdict.FORBIDDEN, detail, answer.status)
