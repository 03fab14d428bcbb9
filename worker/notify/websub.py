"""WebSub: the hub that the feeds name is told that they changed (PROTOCOL F11)."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlencode

from shared import feeds
from shared.sites import Site
from worker.notify.contract import Allowed, Outbound, Page, Request, Teller


class WebSub(Teller):
    """Told of both feeds."""

    most, whole = 10_000, True

    def __init__(self, site: Site, allowed: Allowed, outbound: Outbound) -> None:
        super().__init__(allowed, outbound)
        self._hub, self._topics = site.hub, [site.base.url(name) for name in feeds.NAMES]

    @property
    def endpoints(self) -> Sequence[str]:
        """The hub."""
        return (self._hub,)

    def requests(self, pages: Sequence[Page], endpoint: str) -> Sequence[Request]:  # noqa: ARG002
        """A POST for each feed; hubs agree on this form, the recommendation leaves it open."""
        form = {"Content-Type": "application/x-www-form-urlencoded"}
        return [
            Request("POST", endpoint, endpoint, form, urlencode(told).encode())
            for told in ({"hub.mode": "publish", "hub.url": topic} for topic in self._topics)
        ]
