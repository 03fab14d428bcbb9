"""Answer what asks for a comparison with the source: resyncs, and the hours that are configured.

In a thread of its own, one site after the other: a source may take hours to read, and no wake-up
waits for it. It looks by itself too, for messages may be lost and the schedule dead.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import redis

from shared.errors import ReconcileError, SourceError, StoreError
from shared.scopes import WHOLE, Scope
from shared.settings import Settings
from shared.sites import Site
from shared.store.resyncs import ReconcileBusyError, Resyncs
from shared.telemetry import logger
from worker.reconciling import Reconciler, Repairs
from worker.sources import Access, public, read

LOOK_S = 60.0
PAUSE_S = 60.0
UNREAD_S = 900.0
REFUSED_S = 3600.0
"""How long a site's source is left alone: after a run, one that it broke off, and one that somebody
has to see to.
"""

BUSY_S = 0.05

_log = logger("reconcile")


class _StoppedError(Exception):
    """The worker stops: the run is given up, and the lock with it."""


class Answerer:
    """Reconciles the sites of one worker, whose name is `owner`."""

    def __init__(
        self, settings: Settings, client: redis.Redis, owner: str, wake: Callable[[str], None],
        quiet: Callable[[], bool] = lambda: False,
    ) -> None:  # fmt: skip
        """`wake` has the events of a site applied; nothing is begun while it is `quiet`."""
        self._quiet = quiet
        self._client, self._sites, self._owner, self._wake = client, settings.sites, owner, wake
        self._resyncs = {name: Resyncs(client, name) for name in settings.sites}
        self._asked = threading.Event()
        self._stopping = threading.Event()
        self._not_before: dict[str, float] = {}
        self._thread = threading.Thread(target=self._look_for_ever, name="reconcile", daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def stop(self) -> None:
        """Begin nothing more, and give up the run that is under way: it loses nothing."""
        self._stopping.set()
        self._asked.set()

    def ask(self) -> None:
        """Something may be open: look now."""
        self._asked.set()

    def look(self) -> None:
        """Answer what is open and due, of every site."""
        for name, site in self._sites.items():
            if self._stopping.is_set():
                return
            try:
                if not self._quiet():
                    self._look_at(name, site)
            except StoreError as error:
                _log.error("reconcile failed", site=name, reason=str(error))
            except Exception:  # noqa: BLE001  # one site's trouble is not the next one's
                self._rest(name, UNREAD_S)
                _log.exception("reconcile failed", site=name)

    def _look_at(self, name: str, site: Site) -> None:
        resyncs = self._resyncs[name]
        scopes = list(resyncs.open())
        if not site.source.get_secret_value():
            if scopes and resyncs.first_this_hour():
                _log.error(
                    "a resync was asked for, and no source is configured", site=name,
                    scopes=[*map(str, scopes)], run="sitemapd reconcile --against SOURCE",
                )  # fmt: skip
            return
        due = site.reconcile_hours and (
            resyncs.begin_ms() - resyncs.last_ms() >= site.reconcile_hours * 3_600_000
        )
        if due:
            scopes = [WHOLE]
        if scopes and time.monotonic() >= self._not_before.get(name, 0.0):
            self._reconcile(name, site, scopes[0] if len(scopes) == 1 else WHOLE)

    def _reconcile(self, name: str, site: Site, scope: Scope) -> None:
        """One run for all that is open: whatever the scope, the whole source must be read."""
        source = site.source.get_secret_value()
        reconciler = Reconciler(self._client, name, site, self._owner)
        items = read(source, Access(site.source_key.get_secret_value(), site.source_query))
        _log.info("reconcile", site=name, scope=str(scope), source=public(source))
        try:
            done = reconciler.run(
                items, scope, say=lambda _: None, drain=lambda: self._drain(name),
                seen=lambda _: self._go_on(),
            )  # fmt: skip
        except (ReconcileBusyError, _StoppedError):
            return
        except (SourceError, ReconcileError) as error:
            self._rest(name, UNREAD_S if isinstance(error, SourceError) else REFUSED_S)
            _log.error("not reconciled", site=name, scope=str(scope), reason=str(error))
            return
        finally:
            self._wake(name)
        self._tell(name, scope, done)

    def _tell(self, name: str, scope: Scope, done: Repairs) -> None:
        self._rest(name, PAUSE_S if done.complete else REFUSED_S)
        if done.complete:
            _log.info("reconciled", site=name, scope=str(scope), **done.figures())
        else:
            _log.error("not reconciled to the end", site=name, scope=str(scope), **done.figures())

    def _drain(self, name: str) -> None:
        self._go_on()
        self._wake(name)
        self._stopping.wait(BUSY_S)

    def _go_on(self) -> None:
        if self._stopping.is_set():
            raise _StoppedError

    def _rest(self, name: str, seconds: float) -> None:
        self._not_before[name] = time.monotonic() + seconds

    def _look_for_ever(self) -> None:
        while not self._stopping.is_set():
            self._asked.clear()
            self.look()
            self._asked.wait(LOOK_S)
