"""The home page of a demo site that has just begun, as its first event.

A sitemap without a page is none (PROTOCOL F12), so until the first event there is no file.
"""

from __future__ import annotations

import http.client
import json
import time
from contextlib import closing
from http import HTTPStatus

from deploy.local.listen_address import reachable
from deploy.local.supervisor import Signals
from shared.config.filenames import index_name
from shared.config.settings import Settings
from shared.config.sites.site import Site
from shared.telemetry.logs import logger

PUBLISHED_S = 10.0
"""Longest wait for the first file. Nothing fails without it."""

_LOOK_S = 0.02
_TIMEOUT_S = 5.0


def list_home_page(settings: Settings, name: str, where: tuple[str, int], signals: Signals) -> None:
    """Send the home page of the site `name` to the webhook at `where`, and wait for the sitemap; a
    failure is logged.
    """
    site = settings.sites.get(name)
    if site is None or not site.tokens:  # as the environment may have it
        return
    try:
        _send(site, name, where)
    except (OSError, http.client.HTTPException) as error:
        logger("up").warning("the home page was not accepted", reason=str(error))
        return
    deadline = time.monotonic() + PUBLISHED_S
    while not (site.web_root / index_name(site, 0)).exists() and not signals.stopping:
        if time.monotonic() > deadline:
            logger("up").warning("the home page is not published yet")
            return
        signals.wait(_LOOK_S)


def _send(site: Site, name: str, where: tuple[str, int]) -> None:
    host, port = where
    body = json.dumps({"type": "upsert", "loc": site.base.url("")})
    headers = {
        "content-type": "application/json",
        "authorization": f"Bearer {site.tokens[0].get_secret_value()}",
    }
    connection = http.client.HTTPConnection(reachable(host), port, timeout=_TIMEOUT_S)
    with closing(connection):
        connection.request("POST", f"/v1/sites/{name}/events", body, headers)
        if (status := connection.getresponse().status) != HTTPStatus.ACCEPTED:
            raise http.client.HTTPException(f"the answer was {status}")
