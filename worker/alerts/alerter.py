"""Alerts of all sites: one worker looks at the conditions, and sends what began and what ended.

Each worker runs this loop; the one that holds the lease works, the others wait for it. A look takes
the same few round trips for one site and for hundreds. A channel that fails is a trouble of the
loop, which status, console and metrics show; its message is sent again, ever more rarely.
"""

from __future__ import annotations

import random
import secrets
import socket
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress

import redis

from shared.admin.alert_findings import findings, volume_findings
from shared.admin.site_signs import SignReader, SiteSigns
from shared.alerts.conditions import Finding
from shared.alerts.lifecycle import Alert, AlertKey, active, advance_all, due, told
from shared.alerts.messages import message_of
from shared.batches import batches
from shared.clock import now_ms
from shared.config.settings import Settings
from shared.errors import StoreDownError, StoreError
from shared.store.operations.alert_store import AlertBoard, AlertLeaseLostError, AlertStore
from shared.telemetry.logs import logger
from worker.alerts import volumes
from worker.alerts.channels import Sender, senders
from worker.alerts.delivery import ChannelDelivery
from worker.loops.companions import Companion
from worker.loops.loop import Loop

LONGEST_S = 60.0
"""Longest back-off (s) of the loop; that of a channel is stored (worker/alerts/delivery.py)."""

SITES = 100
"""Sites that are read together: 40 ms of work in a worker that has events to decide, too."""

_log = logger("alerts")


class Alerter(Companion):
    """Alerts of the sites of `settings`, by the worker `owner`."""

    POLL_S = 15.0

    def __init__(
        self, settings: Settings, client: redis.Redis, owner: str, *,
        clock: Callable[[], int] = now_ms, jitter: Callable[[], float] = random.random,
        channels: Mapping[str, Sender] | None = None,
    ) -> None:  # fmt: skip
        """Prepare the look at all sites. `clock` gives milliseconds since 1970, `jitter` numbers in
        0..1; `channels` are by default those of the settings.
        """
        super().__init__(Loop("alerts", longest_s=LONGEST_S))
        self._client, self._clock, self._jitter = client, clock, jitter
        self._store, self._channels = AlertStore(client, owner), channels
        self._holding = False
        self._take(*self._built(settings))
        self._coming: tuple[Settings, dict[str, ChannelDelivery]] | None = None

    def _built(self, settings: Settings) -> tuple[Settings, dict[str, ChannelDelivery]]:
        known = senders(settings.alerts) if self._channels is None else self._channels
        return settings, {
            name: ChannelDelivery(self._store, name, sender, self._clock, self._jitter)
            for name, sender in known.items()
        }

    def _take(self, settings: Settings, deliveries: dict[str, ChannelDelivery]) -> None:
        self._settings, self._deliveries = settings, deliveries
        self._reader = SignReader(self._client, settings.sites)
        self._name = settings.alerts.name or socket.gethostname()

    def prepare(self, settings: Settings) -> Callable[[], None]:
        """Build the channels of `settings`; the returned function puts them in force for the next
        look.
        """
        built = self._built(settings)

        def put_in_force() -> None:
            self._coming = built
            self._begin_loop()

        return put_in_force

    @property
    def switched_on(self) -> bool:
        """True if there is a channel."""
        return bool(self._coming[1] if self._coming else self._deliveries)

    def stop(self) -> None:
        """Start no further look, and leave the lease to another worker."""
        super().stop()
        if self._deliveries:
            with suppress(StoreError):
                self._store.release()

    def look(self) -> bool:
        """Look at all conditions and send what is due, if this worker holds the lease; return True
        if a message was sent and another waits. Raises StoreError.
        """
        if self._coming is not None:
            coming, self._coming = self._coming, None
            self._forget_troubles(self._deliveries.keys() - coming[1].keys())
            self._take(*coming)
        holding = self._store.hold()
        if self._holding and not holding:
            self._forget_troubles(self._deliveries)  # they are those of the new holder now
        self._holding = holding
        if not holding:
            return False
        with suppress(AlertLeaseLostError):
            board = self._watched(self._store.board())
            more = [self._deliver(delivery, board) for delivery in self._deliveries.values()]
            return any(more)
        return False

    def _forget_troubles(self, channels: Iterable[str]) -> None:
        for name in channels:
            with self.loop.at("", name):
                pass

    def _deliver(self, delivery: ChannelDelivery, board: AlertBoard) -> bool:
        more = False
        if self.loop.due("", delivery.name):
            with self.loop.at("", delivery.name), suppress(AlertLeaseLostError):
                more = delivery.deliver(board)
        return more

    def _watched(self, board: AlertBoard) -> AlertBoard:
        """Return the board after a look at every condition, stored with the message about it."""
        settings, now = self._settings.alerts, self._clock()
        found, unread = self._found(board)
        kept = {key: alert for key, alert in board.alerts.items() if key.site in unread}
        rest = {key: alert for key, alert in board.alerts.items() if key.site not in unread}
        after = kept | advance_all(rest, found, now, settings.rules)
        self._report(board.alerts, after)
        announced = due(
            after, board.sent_ms, now, group_ms=int(settings.group_seconds * 1000),
            hourly=settings.messages_per_hour,
        )  # fmt: skip
        message = None
        if announced is not None:
            ident = f"alert_{secrets.token_hex(8)}"
            message = message_of(announced, ident, self._name, now, len(active(after)))
            after = told(after, announced)
        self._store.write(board.alerts, after, message, self._deliveries)
        mine = self._deliveries.keys()
        self._store.forget([n for n, each in board.messages.items() if not mine & {*each.channels}])
        return board if message is None else self._store.board()

    def _found(self, board: AlertBoard) -> tuple[dict[AlertKey, Finding], frozenset[str]]:
        """Return the findings of all sites, and the sites of which nothing is known."""
        looks, wrong = self._signs()
        for name in self._settings.sites:
            with self.loop.at(name):
                if name in wrong:
                    raise wrong[name]
        found = dict[AlertKey, Finding]()

        def note(site: str, some: Iterable[tuple[str, Finding]]) -> None:
            found.update((AlertKey(condition, site), each) for condition, each in some)

        for signs in looks:
            name, limits = signs.site, self._settings.alerts.limits(signs.site)
            before = [each for each in limits if AlertKey(each, name) in board.alerts]
            volume = volumes.of_directory(self._settings.sites[name].web_root)
            note(name, findings(signs, limits, before))
            note(name, volume_findings(name, [volume] if volume else [], limits, before))
        limits = self._settings.alerts.limits("")
        before = [each for each in limits if AlertKey(each, "") in board.alerts]
        note("", volume_findings("", list(volumes.of_redis(self._client)), limits, before))
        return found, frozenset(wrong)

    def _signs(self) -> tuple[list[SiteSigns], dict[str, Exception]]:
        """Return the signs of all sites, and the errors of those that cannot be read: what is
        damaged at one hides no other. Raises StoreDownError.
        """
        looks, wrong = list[SiteSigns](), dict[str, Exception]()
        for names in batches(self._settings.sites, SITES):
            self.loop.progress()
            try:
                looks += self._reader.read(names)
            except StoreDownError:
                raise
            except Exception:  # noqa: BLE001  # of any of them: each is read by itself
                for name in names:
                    try:
                        looks += self._reader.read([name])
                    except StoreDownError:
                        raise
                    except Exception as error:  # noqa: BLE001  # raised where its site is reported
                        wrong[name] = error
        return looks, wrong

    def _report(self, before: Mapping[AlertKey, Alert], after: Mapping[AlertKey, Alert]) -> None:
        """Log each alert that began or ended."""
        for key, alert in active(after).items():
            if key not in before or not before[key].active:
                _log.warning(
                    "alert began", condition=key.condition, site=key.site, reason=alert.said
                )
        for key in active(before):
            if key not in after or not after[key].active:
                _log.info("alert ended", condition=key.condition, site=key.site)
