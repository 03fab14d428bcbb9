"""Baidu's push interface: 2,000 added or changed URLs in a request, within a daily quota."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

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

QUOTA_S = 6 * 3600.0
_UNVERIFIED = ("site error", "site init fail")


class Baidu(ConfiguredEngine[engines.BaiduSettings]):
    """Baidu, notified of listed pages only: it accepts removed ones only as a file of dead
    links.
    """

    most = 2_000

    def __init__(
        self, site: Site, config: engines.BaiduSettings, allowed: AllowedHosts, outbound: Outbound
    ) -> None:
        super().__init__(config, allowed, outbound)
        self._site = config.site or site.base.origin

    def wants(self, page: NotifiedPage) -> bool:
        """Return True for listed pages."""
        return page.live

    def requests(self, pages: Sequence[NotifiedPage], endpoint: str) -> Sequence[OutboundRequest]:
        """Return one POST, with one URL per line."""
        url = f"{endpoint}?{urlencode({'site': self._site})}"
        body = "\n".join(page.loc for page in pages).encode()
        return [OutboundRequest("POST", url, url, {"Content-Type": "text/plain"}, body)]

    def sign(self, request: OutboundRequest) -> OutboundRequest:
        """Add the token to the query. Raises CredentialError."""
        token = urlencode({"token": self.secret(self._config.token)})
        return request._replace(url=f"{request.url}&{token}")

    def judge(self, answer: OutboundAnswer) -> NotificationOutcome:
        """Return the meaning by the body: errors may come with status 200."""
        said = fields(answer.body)
        if said is None or not ({"success", "error"} & said.keys()):
            if answer.status == 200:
                return NotificationOutcome(AnswerVerdict.FAILED, "200 without its JSON", 200)
            return by_status(answer)
        if "error" not in said:
            rejected = (*_urls(said, "not_same_site"), *_urls(said, "not_valid"))
            return NotificationOutcome(AnswerVerdict.DONE, "", answer.status, rejected=rejected)
        detail = excerpt(said.get("message"))
        if "quota" in detail.lower():
            return NotificationOutcome(AnswerVerdict.BUSY, detail, answer.status, QUOTA_S)
        if detail.lower() in _UNVERIFIED:
            return NotificationOutcome(
                AnswerVerdict.FORBIDDEN, f"{detail}: verify the site there", answer.status
            )
        code = said["error"] if isinstance(said["error"], int) else 500
        return by_status(answer._replace(status=code if code >= 400 else 500))


def _urls(said: dict[str, Any], name: str) -> tuple[str, ...]:
    found = said.get(name)
    return tuple(url for url in found if isinstance(url, str)) if isinstance(found, list) else ()
