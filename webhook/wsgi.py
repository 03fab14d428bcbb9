"""WSGI entry point: `granian --interface wsgi --factory webhook.wsgi:app`.

SITEMAPD_CONFIG names the configuration file (default: `sitemapd.toml` in the working directory).
"""

from __future__ import annotations

import os
from pathlib import Path

from shared.config import settings
from shared.config.live import LiveSettings
from shared.errors import StoreDownError
from shared.store.server_settings import check_settings
from shared.telemetry import logs
from webhook.live_app import LiveApp


def app() -> LiveApp:
    """Return the configured application, which follows its configuration file.

    Raises ConfigError, or UnsafeStoreError if Redis may lose events. Starts even if Redis does not
    answer yet: `/readyz` and every event are answered 503 until it does.
    """
    live = LiveSettings(Path(os.environ.get("SITEMAPD_CONFIG", settings.FILE)))
    logs.configure(level=live.current.log_level, traced_as="web")
    found = LiveApp(live)
    try:
        if not found.settings.allow_loss:
            check_settings(found.client)
    except StoreDownError as error:
        logs.logger("webhook").warning("started without Redis", reason=str(error))
    found.start()
    return found
