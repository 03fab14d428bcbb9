"""Assembly of the webhook: settings in, a WSGI application out."""

from __future__ import annotations

from functools import cached_property, partial
from typing import NamedTuple
from urllib.parse import parse_qsl

import redis
from flask import Flask, Request
from werkzeug.datastructures import ImmutableMultiDict

from shared.config.edit.config_file import ConfigFile
from shared.config.settings import Settings
from shared.sitemap.extensions import languages
from shared.store.connection import connect
from webhook import responses
from webhook.console import blueprint as console
from webhook.console.services import Services
from webhook.rejection_log import RejectionLog
from webhook.request_metrics import RequestMetrics
from webhook.tenants import Gate, Tenants
from webhook.views.cms_hook_view import CmsHookView
from webhook.views.event_view import EventView
from webhook.views.metrics_view import MetricsView
from webhook.views.operator_view import OperatorView
from webhook.views.status_views import StatusViews
from webhook.views.websub_view import WebSubView
from webhook.wakeups import Wakeups

REDIS_TIMEOUT_S = 1.0
"""Seconds. Senders give up after 5 s (RELIABILITY 3); a response must arrive within 3 s."""


_QUOTED = "werkzeug.url_quote"
"""How Werkzeug itself reads an escape that is no text: it stays an escape."""


class _Request(Request):
    """A request whose query may hold any bytes, as its path may; Werkzeug 3 raises for some of
    them.
    """

    @cached_property
    def args(self) -> ImmutableMultiDict[str, str]:
        text = self.query_string.decode("utf-8", _QUOTED)
        return ImmutableMultiDict(parse_qsl(text, keep_blank_values=True, errors=_QUOTED))


class Lasting(NamedTuple):
    """The parts of a process that outlast a change of its configuration."""

    gate: Gate
    waker: Wakeups
    metrics: RequestMetrics

    @classmethod
    def of(cls, settings: Settings, client: redis.Redis) -> Lasting:
        """Return the parts of a new process."""
        return cls(Gate(), Wakeups(settings.redis_url, settings.broker_url), RequestMetrics(client))


def create_app(
    settings: Settings, client: redis.Redis | None = None, refusals: RejectionLog | None = None,
    lasting: Lasting | None = None, config: ConfigFile | None = None,
) -> Flask:  # fmt: skip
    """Return the webhook for `settings`; `client` replaces the connection to `settings.redis_url`.

    `refusals`, if given, notes refused requests for the administrator. `config` is what
    the operator's API changes; without it the API answers 404.
    """
    if client is None:
        client = connect(settings.redis_url, REDIS_TIMEOUT_S)
    app = responses.LeanFlask("webhook", static_folder=None)
    app.request_class = _Request
    # Addresses match with and without a final slash: senders do not follow redirects.
    app.url_map.strict_slashes = False
    app.url_map.merge_slashes = False
    app.config["PROVIDE_AUTOMATIC_OPTIONS"] = False
    gate, waker, metrics = lasting or Lasting.of(settings, client)
    responses.install(app, metrics.note, refusals.note if refusals else None)
    metrics.attend(app)
    languages.load()  # takes 0.03 s, which no request should wait for

    tenants = Tenants(settings, client, gate)
    events = EventView(tenants, waker, body_limit=settings.body_limit)
    hubs = WebSubView(tenants, gate, client)
    hooks = CmsHookView(tenants, gate, waker, client, hubs, body_limit=settings.body_limit)
    queries = StatusViews(tenants, gate, client)
    app.add_url_rule("/v1/sites/<site>/events", "events", events.post, methods=["POST"])
    app.add_url_rule("/v1/sites/<site>/hooks/<source>", "hooks", hooks.post, methods=["POST"])
    app.add_url_rule("/v1/sites/<site>/hooks/websub", "hubs", hubs.get)
    distributed = partial(hooks.post, source="websub")
    app.add_url_rule("/v1/sites/<site>/hooks/websub", "feeds", distributed, methods=["POST"])
    app.add_url_rule("/v1/sites/<site>", "site", queries.site)
    operator = OperatorView(settings, client, gate, config)
    app.add_url_rule("/v1/sites", "sites", operator.list)
    app.add_url_rule("/v1/sites", "add_site", operator.add, methods=["POST"])
    app.add_url_rule("/v1/sites/<site>", "remove_site", operator.remove, methods=["DELETE"])
    sections = "/v1/sites/<site>/sections"
    app.add_url_rule(sections, "add_section", operator.add_section, methods=["POST"])
    app.add_url_rule("/v1/sites/<site>/entries", "entries", queries.entries)
    app.add_url_rule("/v1/sites/<site>/listed", "listed", queries.listed)
    app.add_url_rule("/metrics", "metrics", MetricsView(settings, gate, client).get)
    app.add_url_rule("/openapi.json", "openapi", queries.openapi)
    app.add_url_rule("/healthz", "healthz", queries.alive)
    app.add_url_rule("/readyz", "readyz", queries.ready)
    console.install(app, Services.of(settings, client, tenants, gate, waker))
    return app
