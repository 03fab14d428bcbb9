"""`sitemapd connect --wait`: the first delivery, and what became of it."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from shared.config.settings import load
from tests.integration.rig import Rig
from tests.unit.webhook.sources.delivering import PATH, SECRET, SITE, signed
from webhook.app import create_app
from webhook.rejection_log import RejectionLog

CONFIG = """\
redis_url = "{url}"
[sites.demo]
base_url = "{base}"
web_root = "public"
tokens = ["a-token-of-the-site"]
[sites.demo.sources.ghost]
secret = "{secret}"
"""


@pytest.fixture
def home(redis_server: Any, store: Any, tmp_path: Path) -> Path:
    assert not store.keys("{*")
    text = CONFIG.format(url=redis_server.url, base=SITE, secret=SECRET)
    (tmp_path / "sitemapd.toml").write_text(text)
    return tmp_path


@pytest.fixture
def waiting(home: Path, request: pytest.FixtureRequest) -> Iterator[subprocess.Popen[str]]:
    """The command, which has said how to connect a CMS, by default Ghost, and waits."""
    command = [sys.executable, "-u", "-c", "from deploy.cli.entry import main; main()", "connect"]
    process = subprocess.Popen(
        [*command, getattr(request, "param", "ghost"), "demo", "--wait", "--home", str(home)],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        cwd=Path(__file__).resolve().parents[3],
    )  # fmt: skip
    assert process.stdout
    for line in process.stdout:
        if line.startswith("waiting"):
            break
    yield process
    process.kill()
    process.wait()


def send(home: Path, body: Any) -> None:
    hook = signed("ghost", body, at=time.time())
    web = create_app(load(home / "sitemapd.toml")).test_client()
    assert web.post(PATH + "ghost", data=hook.body, headers=dict(hook.headers)).status_code == 200


def test_what_was_understood_and_decided_is_said(waiting, home, store):
    send(home, {"post": {"current": {"id": "p", "status": "published", "url": SITE + "/a/"}}})
    assert waiting.stdout
    assert waiting.stdout.readline().split() == ["type", "upsert"]
    Rig(store, home / "public").settle()
    said = waiting.communicate(timeout=60)[0]

    assert SITE + "/a/" in said
    assert "added" in said
    assert "pages-1.xml" in said
    assert waiting.returncode == 0


def test_why_it_was_ignored_is_said(waiting, home):
    send(home, {"member": {}})
    said = waiting.communicate(timeout=60)[0]

    assert "not about a post, a page or a tag" in said
    assert waiting.returncode == 0


def test_a_delivery_that_was_refused_is_said_and_the_next_one_waited_for(waiting, home, store):
    settings = load(home / "sitemapd.toml")
    web = create_app(settings, refusals=RejectionLog(settings)).test_client()
    wrong = {
        **signed("ghost", {"post": {}}, at=time.time()).headers,
        "x-ghost-signature": "sha256=0, t=1",
    }
    assert web.post(PATH + "ghost", data=b"{}", headers=wrong).status_code == 401
    assert waiting.stdout
    said = waiting.stdout.readline()
    assert "401 unauthorized: the Secret of the webhook is not a secret of this site" in said
    send(home, {"post": {"current": {"id": "p", "status": "published", "url": SITE + "/a/"}}})

    assert waiting.stdout.readline().split() == ["type", "upsert"]
    Rig(store, home / "public").settle()
    assert "pages-1.xml" in waiting.communicate(timeout=60)[0]


@pytest.mark.parametrize("waiting", ["wordpress"], indirect=True)
def test_the_plugin_of_wordpress_is_waited_for_where_it_sends_to(waiting, home, store):
    web = create_app(load(home / "sitemapd.toml")).test_client()
    told = {"type": "upsert", "id": "post:5", "loc": SITE + "/a/"}
    headers = {"authorization": "Bearer a-token-of-the-site"}
    assert web.post("/v1/sites/demo/events", json=told, headers=headers).status_code == 202
    assert waiting.stdout

    assert waiting.stdout.readline().split() == ["type", "upsert"]
    Rig(store, home / "public").settle()
    assert "pages-1.xml" in waiting.communicate(timeout=60)[0]
