"""`sitemapd up` tells engines over HTTP, and no key of one turns up anywhere (RELIABILITY T30)."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from tests.integration.engines import Engine, engine, reply
from tests.system.driver import System, wait_until

KEY, CANARY = "0123456789abcdef", "canary-key-of-bing"
CONFIG = """
[sites.demo]
base_url = "https://www.example.com"
web_root = "public"
secrets = ["whsec_{secret}"]
[sites.demo.notify]
hosts = ["127.0.0.1"]
[sites.demo.notify.indexnow]
key = "{key}"
endpoints = ["{indexnow}/indexnow"]
allow_private = true
[sites.demo.notify.bing]
key = "{canary}"
endpoint = "{bing}/bing"
allow_private = true
"""


@pytest.fixture
def indexnow() -> Iterator[Engine]:
    with engine(reply(200)) as server:
        yield server


@pytest.fixture
def bing() -> Iterator[Engine]:
    with engine(reply(403, f"no such key {CANARY}".encode())) as server:
        yield server


@pytest.fixture
def system(tmp_path: Path, indexnow: Engine, bing: Engine) -> Iterator[System]:
    system = System(tmp_path / "home")
    secret = base64.b64encode(bytes(32)).decode()
    config = CONFIG.format(
        secret=secret, key=KEY, canary=CANARY, indexnow=indexnow.url, bing=bing.url
    )
    system.configure(config)
    system.start()
    yield system
    if system.process.poll() is None:
        assert system.stop() == 0


def test_a_running_sitemapd_tells_and_keeps_its_keys_to_itself(
    system: System, indexnow: Engine, bing: Engine
) -> None:
    with redis.Redis(unix_socket_path=str(system.home / "redis" / "redis.sock")) as client:
        for name in ("indexnow", "bing"):
            client.zadd(f"{{demo}}:notify:{name}", {"https://www.example.com/a": 1})
        wait_until(lambda: client.xlen("{demo}:notices") == 2, "both engines are told")

    assert indexnow.asked[0].json()["urlList"] == ["https://www.example.com/a"]
    assert bing.asked[0].target == f"/bing?apikey={CANARY}"
    status, headers, content = system.get(f"/{KEY}.txt")
    assert (status, content) == (200, KEY.encode())
    assert headers["content-type"] == "text/plain; charset=utf-8"
    shown = "".join(system.run("notify", each).stdout for each in ("list", "test"))
    assert system.stop() == 0
    logs = [system.home.parent / "home.log", *system.home.glob("logs/*")]
    log = "".join(path.read_text(errors="replace") for path in logs)
    assert "no such key ***" in log
    assert CANARY not in log + shown
