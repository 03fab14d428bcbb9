"""Subscription at WebSub hubs to the feeds that a site is connected to, and renewal before a lease
ends.

https://www.w3.org/TR/websub/, 4 and 5.1. The rules of all outgoing requests apply (RELIABILITY
T22): a feed is fetched only at the address that the administrator configured, a hub only at a known
or configured host, whatever a feed says.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import partial
from urllib.parse import urlencode, urljoin, urlsplit

import redis

from shared.clock import now_ms
from shared.config.notify import hubs
from shared.config.settings import Settings
from shared.config.sites.cms_connections import Connection
from shared.config.sites.site import Site
from shared.errors import BarredError, OutboundError
from shared.sitemap import feed_parser
from shared.store.notify.subscriptions import Subscription, Subscriptions
from shared.telemetry.logs import logger
from worker.http.client import ask
from worker.http.exchange import AllowedHosts, Outbound, OutboundRequest, excerpt
from worker.loops.companions import SiteCompanion
from worker.loops.loop import Loop
from worker.notify.engine import AnswerVerdict, NotificationOutcome, by_status

NAME = "websub"
REFUSED_MS = 24 * 3600_000
"""Milliseconds until a hub is asked again that refused the request, or may not be asked."""

_LINK = re.compile(r'<([^<>]*)>((?:[^,"]|"[^"]*")*)')
_RELATION = re.compile(r';\s*rel\s*=\s*(?:"([^"]*)"|([^\s;,"]+))', re.IGNORECASE)
_FORM = {"Content-Type": "application/x-www-form-urlencoded"}
_FEEDS = {"Accept": "application/atom+xml, application/rss+xml, application/xml;q=0.9, */*;q=0.1"}

_log = logger("websub")


def linked(header: str) -> dict[str, list[str]]:
    """Return the addresses in a `Link` header by relation (RFC 8288)."""
    found: dict[str, list[str]] = {}
    for address, parameters in _LINK.findall(header):
        named = _RELATION.search(parameters)
        for relation in ((named[1] or named[2]) if named else "").lower().split():
            found.setdefault(relation, []).append(address.strip())
    return found


class SiteHubs:
    """Subscriptions of one site that has the source `websub`."""

    def __init__(
        self, client: redis.Redis, name: str, site: Site, *,
        clock: Callable[[], int] = now_ms, outbound: Outbound = ask,
    ) -> None:  # fmt: skip
        """Prepare the requests of one site; `clock` gives milliseconds since 1970."""
        self.name, self._site, self._clock, self._outbound = name, site, clock, outbound
        self.connection: Connection = site.sources[NAME]
        self.subscriptions = Subscriptions(client, name)

    def due(self) -> list[str]:
        """Return the feeds whose hub is to be asked now. Raises StoreError.

        A feed that is no longer configured is unsubscribed from; its record is then deleted.
        """
        now, topics = self._clock(), self.connection.topics
        known = {one.topic: one for one in self.subscriptions.all()}
        if new := [topic for topic in topics if topic not in known]:
            self.subscriptions.add(new, now)
        for topic in known.keys() - set(topics):
            if known[topic].until <= now:
                self.subscriptions.forget(topic)
            elif known[topic].mode == hubs.SUBSCRIBE:
                self.want(topic, hubs.UNSUBSCRIBE)
        now = self._clock()
        return [one.topic for one in self.subscriptions.all() if 0 < one.due <= now]

    def want(self, topic: str, mode: str) -> Subscription | None:
        """Request to subscribe or unsubscribe, which is due at once. Raises StoreError."""
        now = self._clock()
        return self.subscriptions.change(topic, lambda one: one.wanted(mode, now))

    def ask(self, topic: str) -> NotificationOutcome | None:
        """Ask the hub of `topic`; None if that is not due, or another worker does it. Raises
        StoreError.
        """
        now = self._clock()
        begun = self.subscriptions.change(
            topic, lambda one: one.begun(now) if 0 < one.due <= now else None
        )
        if begun is None:
            return None
        outcome = self._asked(begun)
        if not outcome.told:
            self._failed(begun, outcome)
        said = {"site": self.name, "topic": topic, "mode": begun.mode, "outcome": outcome.verdict}
        _log.info("subscription requested", **said, status=outcome.status, detail=outcome.detail)
        return outcome

    def _asked(self, begun: Subscription) -> NotificationOutcome:
        secret = self.connection.secrets()[0]
        name = hubs.ident(secret, begun.topic)
        key = hubs.key(secret, name).decode()
        try:
            hub, feed = self._hub_of(begun)
            # Stored before the request: the hub may verify before it answers.
            self.subscriptions.change(begun.topic, lambda one: one._replace(hub=hub, feed=feed))
            callback = hubs.callback(self._origin, self.name, name)
            form = {"hub.callback": callback, "hub.mode": begun.mode, "hub.topic": feed}
            if begun.mode == hubs.SUBSCRIBE:
                form |= {"hub.lease_seconds": str(hubs.LEASE_S), "hub.secret": key}
            request = OutboundRequest("POST", hub, hub, _FORM, urlencode(form).encode())
            outcome = by_status(self._outbound(request, self._allowed(self._site.notify.allowed)))
        except BarredError as error:
            outcome = NotificationOutcome(AnswerVerdict.HELD, str(error))
        except OutboundError as error:
            outcome = NotificationOutcome(AnswerVerdict.FAILED, str(error))
        if outcome.verdict == AnswerVerdict.PENDING:
            outcome = outcome._replace(detail="accepted; the hub still has to verify the request")
        return outcome._replace(detail=outcome.detail.replace(key, "***").replace(name, "***"))

    @property
    def _origin(self) -> str:
        return self.connection.callback or self._site.base.origin

    def _allowed(self, hosts: Iterable[str]) -> AllowedHosts:
        return AllowedHosts(frozenset(hosts), self.connection.allow_private)

    def _hub_of(self, one: Subscription) -> tuple[str, str]:
        """Return the hub of a feed, and the feed's own name for itself.

        For an unsubscription they are those of the subscription.
        """
        if one.mode == hubs.UNSUBSCRIBE and one.hub:
            return one.hub, one.feed
        if self.connection.hub:
            return self.connection.hub, one.topic
        request = OutboundRequest("GET", one.topic, one.topic, _FEEDS, partly=True)
        answer = self._outbound(request, self._allowed({urlsplit(one.topic).hostname or ""}))
        if answer.status != 200:
            raise OutboundError(f"the feed cannot be read: it answered {answer.status}")
        links = linked(answer.headers.get("link", ""))
        if "hub" not in links:
            links = {**feed_parser.head(answer.body), **links}
        named = [_joined(one.topic, hub) for hub in links.get("hub", [])]
        may = [hub for hub in named if _host(hub) in self._site.notify.allowed]
        if not may:
            raise BarredError(_no_hub(named))
        return may[0], _joined(one.topic, links.get("self", [""])[0])

    def _failed(self, begun: Subscription, outcome: NotificationOutcome) -> None:
        """Schedule the retry: as in `begun`, when the hub says, or tomorrow after a refusal."""
        now, due = self._clock(), begun.due
        if outcome.verdict not in {AnswerVerdict.FAILED, AnswerVerdict.BUSY}:
            due = now + REFUSED_MS
        elif outcome.wait is not None:
            due = max(due, now + int(outcome.wait * 1000))
        self.subscriptions.change(
            begun.topic,
            # Not if it was verified meanwhile, or requested again.
            lambda one: (
                one.failed(outcome.detail, due)
                if (one.state, one.asked) == (begun.state, begun.asked)
                else None
            ),
        )


def _joined(topic: str, link: str) -> str:
    try:
        return urljoin(topic, link)
    except ValueError:  # a bracket in the host, for example
        raise OutboundError("a link in the head of the feed is not a URL") from None


def _host(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""


def _no_hub(named: list[str]) -> str:
    if not named:
        return "the feed names no hub: set one as `hub`"
    hosts = ", ".join(dict.fromkeys(excerpt(_host(hub).encode()) or "?" for hub in named[:3]))
    return f"the hub of the feed is at {hosts}, which is not allowed: add it to notify.hosts"


class WebSubSubscriber(SiteCompanion[SiteHubs]):
    """Subscriptions of all sites, made by one worker in a thread of its own."""

    POLL_S = 10.0

    def __init__(
        self, settings: Settings, client: redis.Redis, quiet: Callable[[], bool] = lambda: False,
        *, clock: Callable[[], int] = now_ms, outbound: Outbound = ask,
    ) -> None:  # fmt: skip
        """Prepare the subscriptions; while `quiet` returns True none is started.

        `clock` gives milliseconds since 1970.
        """
        self._hubs = partial(SiteHubs, client, clock=clock, outbound=outbound)
        super().__init__(settings, Loop("websub"), quiet)

    def _serves(self, site: Site) -> bool:
        return NAME in site.sources

    def _build(self, name: str, site: Site) -> SiteHubs:
        return self._hubs(name, site)

    def look(self) -> None:
        """Ask every hub that is due, one after the other."""
        for name, (_, site) in self._sites.items():
            if not self.loop.due(name):
                continue
            with self.loop.at(name):
                for topic in site.due():
                    if self.loop.stopping or self._quiet():
                        return
                    if self.loop.due(name, topic):
                        with self.loop.at(name, topic):
                            site.ask(topic)
