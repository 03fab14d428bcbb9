"""IndexNow (PROTOCOL U3-U8): 10,000 changed or removed URLs in a request, one key for the host."""

from __future__ import annotations

import json
from collections.abc import Sequence
from urllib.parse import urlsplit

from shared.notify import engines
from shared.sites import Site
from worker.notify.contract import (
    Allowed,
    Answer,
    Outbound,
    Outcome,
    Page,
    Request,
    Teller,
    Verdict,
)

MOST_BYTES = 4 * 1024 * 1024
"""Of URLs in a request, which has to be over in five seconds: 10,000 of 400 characters."""

_TYPE = {"Content-Type": "application/json; charset=utf-8"}


class IndexNow(Teller):
    """Told of every page; it fetches the key's file to see that we speak for the host."""

    most = 10_000

    def __init__(
        self, site: Site, config: engines.IndexNow, allowed: Allowed, outbound: Outbound
    ) -> None:
        super().__init__(allowed, outbound)
        self._config = config
        self._host = site.base.origin.partition("://")[2]
        self.key_url = config.key_location or site.base.url(f"{config.key}.txt")

    @property
    def endpoints(self) -> Sequence[str]:
        """In the order of the configuration: what one is told, all are (PROTOCOL U6)."""
        return self._config.endpoints

    def requests(self, pages: Sequence[Page], endpoint: str) -> Sequence[Request]:
        """One POST; more of them for very long URLs."""
        chunks, size = [list[str]()], 0
        for page in pages:
            size += len(page.loc)
            if size > MOST_BYTES:
                chunks.append([])
                size = len(page.loc)
            chunks[-1].append(page.loc)
        return [self._request(chunk, endpoint) for chunk in chunks]

    def _request(self, locs: list[str], endpoint: str) -> Request:
        told = {
            "host": self._host,
            "key": self._config.key,
            "keyLocation": self.key_url,
            "urlList": locs,
        }
        return Request("POST", endpoint, endpoint, _TYPE, json.dumps(told).encode())

    def check(self) -> Outcome:
        """Whether the key's file is served as the engines will see it (RELIABILITY T31)."""
        host = urlsplit(self.key_url).hostname or ""
        ours = Allowed(frozenset({host}), self._config.allow_private, http=True)

        def send() -> Outcome:
            answer = self._outbound(Request("GET", self.key_url, self.key_url), ours)
            return self._seen(answer)

        return self.heard(send)

    def _seen(self, answer: Answer) -> Outcome:
        if answer.status == 200 and answer.body.strip() == self._config.key.encode():
            return Outcome(Verdict.DONE, f"the key is served at {self.key_url}", 200)
        what = f"answers {answer.status}" if answer.status != 200 else "holds something else"
        detail = f"{self.key_url} {what}: it must be served with the key and nothing else"
        return Outcome(Verdict.FORBIDDEN, detail, answer.status)
