"""Web, worker and schedule as users of Redis of their own, written by `sitemapd deploy-files`: all
they do is allowed, and nothing beside is.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from tests.integration.webmasters import SECRET, Bing, serving
from tests.system.driver import wait_until
from tests.system.parts import BASE, CONFIG, PARTS, TOKEN, Parts, servers

AUDITOR = "of-the-auditor"
USER = "of-a-person-who-uses-the-console"
CONSOLE = f"""
metrics_token = "{TOKEN}"
[console]
origin = "http://localhost"
[console.users.ann]
token = "{USER}"
role = "operator"
{CONFIG}
secrets = ["whsec_b25seS1mb3ItdGhlc2UtdGVzdHMtb25seQ=="]
sections = {{ posts = {{}}, news = {{ news = true }} }}
source = "ndjson:{{home}}/pages.ndjson"
[sites.demo.notify]
hosts = ["127.0.0.1"]
[sites.demo.notify.crawler]
url = "http://127.0.0.1:9/?sitemap={{sitemap}}"
allow_private = true
[sites.demo.readback]
first_minutes = 0
[sites.demo.readback.bing]
key = "{SECRET}"
endpoint = "{{bing}}/json"
allow_private = true
"""


@pytest.fixture
def bing() -> Iterator[Bing]:
    with serving(Bing(BASE)) as server:
        yield server


@pytest.fixture(params=servers(), ids=lambda path: path.name)
def roles(request: pytest.FixtureRequest, tmp_path: Path, bing: Bing) -> Iterator[Parts]:
    """All parts, each as its role."""
    parts = Parts(tmp_path / "home", request.param)
    config = CONSOLE.replace("{home}", str(parts.home)).replace("{bing}", bing.url)
    (parts.home / "sitemapd.toml").write_text(config)
    (parts.home / "pages.ndjson").write_text(f'{{"loc":"{BASE}/from-the-source"}}\n')
    parts.by_roles()
    digest = hashlib.sha256(AUDITOR.encode()).hexdigest()
    with (parts.home / "users").open("a") as users:
        users.write(f"user auditor on #{digest} ~* &* +@all\n")
    try:
        parts.redis()
        for name in PARTS:
            parts.part(name)
        yield parts
    finally:
        for name in reversed([*parts.running]):
            parts.stop(name)


def auditor(parts: Parts) -> redis.Redis:
    return redis.Redis(
        unix_socket_path=str(parts.redis_socket), username="auditor", password=AUDITOR
    )


def denied(parts: Parts) -> list[str]:
    with auditor(parts) as client:
        found: Any = client.acl_log()
    return [f"{e['username']} {e['reason']} {e['object']} {e['context']}" for e in found]


class Console:
    """A browser of the console, over the socket of the web part."""

    def __init__(self, parts: Parts) -> None:
        self.parts, self.cookie = parts, ""
        status, _ = self._ask("POST", "/admin/login", f"user=ann&token={USER}")
        assert status == 303
        found = re.search('name="csrf" value="([^"]+)"', self.page("/admin/"))
        assert found
        self.csrf = found[1]

    def _ask(self, method: str, path: str, body: str = "") -> tuple[int, str]:
        connection = self.parts.connect()
        headers = {
            "Host": "localhost", "Origin": "http://localhost", "Cookie": self.cookie,
            "Content-Type": "application/x-www-form-urlencoded",
        }  # fmt: skip
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        self.cookie = (answer.getheader("Set-Cookie") or self.cookie).partition(";")[0]
        text = answer.read().decode()
        connection.close()
        return answer.status, text

    def page(self, path: str) -> str:
        status, text = self._ask("GET", path)
        assert status == 200, (path, status, text)
        return text

    def act(self, path: str, form: str = "") -> None:
        status, text = self._ask("POST", path, f"csrf={self.csrf}&site=demo&{form}")
        assert status == 303, (path, status, text)


def test_each_part_as_its_own_user_is_refused_nothing_that_it_does(
    roles: Parts, bing: Bing
) -> None:
    wait_until(lambda: roles.post("a") == 202, "an event is accepted")
    wait_until(lambda: roles.lists("a"), "it is published")
    wait_until(lambda: bing.asked("GetUrlInfo"), "Bing is asked about it")
    console = Console(roles)
    for page in ("", "sites", "events", "queues", "failed", "files", "checks", "workers",
                 "notifications", "index-status", "audit"):  # fmt: skip
        console.page(f"/admin/{page}?site=demo")
    assert f"{BASE}/a" in console.page(f"/admin/inspector?loc={BASE}/a")

    console.act("/admin/queues/pause", "queue=publish")
    assert roles.post("b") == 202
    console.act("/admin/queues/resume", "queue=publish")
    wait_until(lambda: roles.lists("b"), "it is published once the queue is resumed")
    console.act("/admin/checks/now")
    console.act("/admin/queues/drain")
    console.act("/admin/queues/resume", "queue=intake")
    token = {"Authorization": f"Bearer {TOKEN}"}
    assert roles.ask("GET", "/metrics", headers=token) == 200
    assert roles.ask("GET", "/v1/sites/demo", headers=token) == 200
    assert roles.post("c?" + "x" * 3000) == 422
    assert roles.command("reconcile", "--yes").returncode == 0
    resync = json.dumps({"type": "resync"})
    sent = token | {"Content-Type": "application/json"}
    assert roles.ask("POST", "/v1/sites/demo/events", resync, sent) == 202
    wait_until(lambda: roles.lists("from-the-source"), "the source is compared")
    wait_until(lambda: roles.command("status").returncode == 0, "nothing is left to do")

    assert denied(roles) == []
    for name in ("web", "worker"):  # tries what is refused, too
        done = roles.command("doctor", "--offline", "--json", part=name)
        found = {each["check"]: each["status"] for each in json.loads(done.stdout)["checks"]}
        assert found["redis rights"] == "ok", done.stdout
        assert "fail" not in found.values(), done.stdout
    with auditor(roles) as client:
        users = {each["user"] for each in client.client_list()}
    assert {"sitemapd-web", "sitemapd-worker"} <= users
    assert not users & {"default", "sitemapd"}


def test_the_password_of_the_web_part_changes_no_published_page(roles: Parts) -> None:
    wait_until(lambda: roles.post("a") == 202, "an event is accepted")
    wait_until(lambda: roles.lists("a"), "it is published")
    url = roles.own["web"]["SITEMAPD_REDIS_URL"]

    with redis.Redis.from_url(url) as thief:
        for key in ("{demo}:counters", "{demo}:section:pages:shards"):
            assert thief.hgetall(key)
            with pytest.raises(redis.exceptions.NoPermissionError):
                thief.delete(key)
        with pytest.raises(redis.exceptions.NoPermissionError):
            thief.config_set("dir", "/tmp")

    assert any("sitemapd-web" in each for each in denied(roles))
