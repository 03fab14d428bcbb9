"""WSGI entry point: `granian --interface wsgi --factory webhook.wsgi:app`.

SITEMAPD_CONFIG names the configuration file (default: `sitemapd.toml` in the working directory).
"""

from __future__ import annotations

import os
from pathlib import Path

from flask import Flask

from shared.config import settings
from shared.errors import StoreDownError
from shared.store.client import connect
from shared.store.server_settings import check_settings
from shared.telemetry import logs
from webhook import request_metrics
from webhook.app import REDIS_TIMEOUT_S, create_app
from webhook.rejection_log import RejectionLog


def app() -> Flask:
    """Return the configured application.

    Raises ConfigError, or UnsafeStoreError if Redis may lose events. Starts even if Redis does not
    answer yet: `/readyz` and every event are answered 503 until it does.
    """
    configured = settings.load(Path(os.environ.get("SITEMAPD_CONFIG", settings.FILE)))
    logs.configure(level=configured.log_level, traced_as="web")
    client = connect(configured.redis_url, REDIS_TIMEOUT_S)
    try:
        if not configured.allow_loss:
            check_settings(client)
    except StoreDownError as error:
        logs.logger("webhook").warning("started without Redis", reason=str(error))
    found = create_app(configured, client, RejectionLog(configured))
    request_metrics.of(found).start()
    return found
