"""The files for one host agree with the code they run."""

from __future__ import annotations

import re
from pathlib import Path

from deploy.local.embedded_redis import SETTINGS
from deploy.web import server
from shared.config.settings import Settings

DEPLOY = Path(__file__).resolve().parents[4] / "deploy"
NGINX = (DEPLOY / "nginx" / "sitemapd.conf").read_text(encoding="utf-8")
# Of the embedded server alone: its socket is its user's own, its log a file of ours, its process
# found again by its environment.
OWN = {"unixsocketperm", "set-proc-title"}


def test_the_redis_of_a_host_is_set_as_the_embedded_one() -> None:
    text = (DEPLOY / "redis" / "sitemapd.conf").read_text(encoding="utf-8")
    shipped = {
        name: value.strip('"')
        for name, value in re.findall(r"(?m)^([a-z-]+) +(\S+)$", text)
        if name in SETTINGS and name not in OWN
    }

    assert shipped == {name: value for name, value in SETTINGS.items() if name not in OWN}


def test_nginx_takes_the_bodies_that_the_webhook_takes_and_no_longer_ones() -> None:
    megabytes = re.search(r"client_max_body_size (\d+)m;", NGINX)

    assert megabytes is not None
    assert int(megabytes[1]) * 1024 * 1024 == Settings.model_fields["body_limit"].default


def test_nginx_lets_go_of_an_idle_connection_before_the_webhook_does() -> None:
    upstream = re.search(r"upstream sitemapd {.*?}", NGINX, re.DOTALL)
    assert upstream is not None
    seconds = re.search(r"keepalive_timeout (\d+)s;", upstream[0])
    assert seconds is not None

    assert int(seconds[1]) * 2000 < server._HEADER_MS
