"""The webhook under a configuration that may change: one application for each revision.

A request is answered by one application from start to end, so by one revision.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import redis
from flask import Flask

from shared.config.edit.config_file import ConfigFile
from shared.config.live import LiveSettings
from shared.config.settings import Settings
from shared.store.connection import connect
from shared.store.operations.config_follower import ConfigFollower
from shared.store.operations.config_reports import process_name
from webhook.app import REDIS_TIMEOUT_S, Lasting, create_app
from webhook.rejection_log import RejectionLog

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment


class LiveApp:
    """WSGI application of one web process, which follows its configuration file."""

    def __init__(
        self, live: LiveSettings,
        around: Callable[[Flask, Settings], WSGIApplication] | None = None,
    ) -> None:  # fmt: skip
        """Build the first application, in a process that is traced already if it is to be.

        `around` returns the application to serve for that of the webhook.
        """
        self._live = live
        self._around = around
        self._file = ConfigFile(live.path, live.files)
        self.client: redis.Redis = connect(self.settings.redis_url, REDIS_TIMEOUT_S)
        self._refusals = RejectionLog(self.settings)
        self._lasting = Lasting.of(self.settings, self.client)
        self._app = self._build(self.settings)

    @property
    def settings(self) -> Settings:
        """The settings in force."""
        return self._live.current

    def __call__(self, environ: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        """Answer one request by the revision that is in force now."""
        return self._app(environ, start)

    def start(self) -> None:
        """Start to measure, and to follow the file; in the process that answers."""
        self._lasting.metrics.start()
        follower = ConfigFollower(self._live, self.client, f"web {process_name()}", self._follow)
        signal.signal(signal.SIGHUP, lambda *_: follower.ask())
        follower.start()

    def _build(self, settings: Settings) -> WSGIApplication:
        app = create_app(settings, self.client, self._refusals, self._lasting, self._file)
        return app if self._around is None else self._around(app, settings)

    def _follow(self, settings: Settings) -> None:
        app = self._build(settings)
        self._refusals.follow(settings)
        self._app = app
