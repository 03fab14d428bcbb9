"""WebSub: notification of the hub that the feeds name (PROTOCOL F11)."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlencode

from shared.config.sites.site import Site
from shared.sitemap import feed_writer
from worker.http.exchange import AllowedHosts, Outbound, OutboundRequest
from worker.notify.engine import Engine, NotifiedPage


class WebSub(Engine):
    """A hub, notified of both feeds."""

    most, whole = 10_000, True

    def __init__(self, site: Site, allowed: AllowedHosts, outbound: Outbound) -> None:
        super().__init__(allowed, outbound)
        self._hub, self._topics = site.hub, [site.base.url(name) for name in feed_writer.NAMES]

    @property
    def endpoints(self) -> Sequence[str]:
        """The hub."""
        return (self._hub,)

    def requests(self, pages: Sequence[NotifiedPage], endpoint: str) -> Sequence[OutboundRequest]:  # noqa: ARG002
        """Return a POST for each feed; hubs agree on this form, the recommendation leaves it
        open.
        """
        form = {"Content-Type": "application/x-www-form-urlencoded"}
        return [
            OutboundRequest("POST", endpoint, endpoint, form, urlencode(told).encode())
            for told in ({"hub.mode": "publish", "hub.url": topic} for topic in self._topics)
        ]
