"""The operator's API adds and removes sites, without a restart and for its tokens only."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from shared.config.settings import load
from shared.store.operations.audit_log import AuditLog
from tests.integration.served import OPERATOR, TOKEN, Answer, Web, wait

SHOP = {"name": "shop", "base_url": "https://shop.example.com", "sections": [{"name": "blog"}]}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path


@pytest.fixture
def web(redis_server, home, secret) -> Iterator[Web]:
    web = Web(redis_server, home, secret, wait)
    web.store.flushall()
    yield web
    web.stop()


@pytest.fixture(scope="module")
def steady(redis_server, tmp_path_factory, secret) -> Iterator[Web]:
    """One for all requests that change nothing: each asserts that it stays as it was."""
    web = Web(redis_server, tmp_path_factory.mktemp("steady"), secret, wait)
    yield web
    web.stop()


def asking(web: Web) -> Callable[..., Answer]:
    def ask(method: str, path: str, body: Any = None, token: str = OPERATOR) -> Answer:
        content = b"" if body is None else json.dumps(body).encode()
        headers = {"content-type": "application/json", "content-length": str(len(content))}
        if token:
            headers["authorization"] = f"Bearer {token}"
        return web.ask(method, path, content, headers)

    return ask


@pytest.fixture
def ask(web: Web) -> Callable[..., Answer]:
    return asking(web)


def until_known(ask: Callable[..., Answer], name: str, *, known: bool = True) -> None:
    def listed() -> bool:
        sites = ask("GET", "/v1/sites").json["sites"]
        return (name in {site["name"] for site in sites}) == known

    wait(listed, f"{name} is {'' if known else 'not '}configured")


def test_a_site_is_added_used_and_removed_while_the_process_stays(
    web: Web, ask: Callable[..., Answer], home: Path
) -> None:
    made = ask("POST", "/v1/sites", SHOP)
    assert made.status == 201, made
    until_known(ask, "shop")

    event = {"type": "upsert", "loc": "https://shop.example.com/a", "section": "blog"}
    sent = ask("POST", made.json["events"], event, made.json["token"])
    assert sent.status == 202, sent
    assert made.json["sections"] == ["blog", "pages"]
    assert Path(made.json["web_root"]) == home / "public-shop"
    assert web.process.poll() is None

    assert ask("DELETE", "/v1/sites/shop").status == 200
    until_known(ask, "shop", known=False)
    assert ask("POST", made.json["events"], event, made.json["token"]).status == 401
    assert web.store.xlen("{shop}:inbox") == 1, "what was accepted is kept"
    audit = AuditLog(web.store).read()
    assert [(each.action, each.way, each.site) for each in audit] == [
        ("site remove", "api", "shop"), ("site add", "api", "shop"),
    ]  # fmt: skip
    said = json.dumps(audit) + web.log.read_text()
    assert made.json["token"] not in said
    assert made.json["secret"] not in said


def test_a_section_is_added(ask: Callable[..., Answer], home: Path) -> None:
    added = ask("POST", "/v1/sites/demo/sections", {"name": "blog", "split": "month"})

    assert (added.status, added.json["sections"]) == (201, ["blog", "pages"])
    assert load(home / "sitemapd.toml").sites["demo"].sections["blog"].split == "month"


@pytest.mark.parametrize("token", ["", TOKEN, OPERATOR + "x"])
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/v1/sites"), ("POST", "/v1/sites"), ("DELETE", "/v1/sites/demo"),
        ("POST", "/v1/sites/demo/sections"),
    ],
)  # fmt: skip
def test_t26_nobody_else_may(steady: Web, method: str, path: str, token: str) -> None:
    before = steady.config.read_bytes()

    refused = asking(steady)(method, path, SHOP, token)

    assert (refused.status, refused.json["code"]) == (401, "unauthorized")
    assert steady.config.read_bytes() == before
    assert steady.process.poll() is None


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/v1/sites", SHOP | {"name": "demo"}, 409), ("/v1/sites", SHOP | {"name": "A"}, 422),
        ("/v1/sites", SHOP | {"web_root": "/etc"}, 422), ("/v1/sites", [SHOP], 422),
        ("/v1/sites", SHOP | {"base_url": "ftp://x"}, 422), ("/v1/sites", {}, 422),
        ("/v1/sites/demo/sections", {"name": "a-1"}, 422),
        ("/v1/sites/none/sections", {"name": "a"}, 404),
    ],
)  # fmt: skip
def test_a_wrong_request_changes_nothing(steady: Web, path: str, body: Any, status: int) -> None:
    before = steady.config.read_bytes()

    refused = asking(steady)("POST", path, body)

    assert refused.status == status, refused
    assert refused.headers["content-type"] == "application/problem+json"
    assert steady.config.read_bytes() == before


def test_the_last_site_stays(steady: Web) -> None:
    refused = asking(steady)("DELETE", "/v1/sites/demo")

    assert (refused.status, refused.json["code"]) == (409, "last-site")


def test_a_token_in_a_file_is_exchanged_without_a_change_of_the_configuration(
    ask: Callable[..., Answer], home: Path
) -> None:
    token = home / "token"
    token.write_text("first-token-of-the-operator\n")
    config = home / "sitemapd.toml"
    text = config.read_text().replace(f'"{OPERATOR}"', f'"file:{token}"')
    new = home / "new"
    new.write_text(text)
    new.rename(config)
    first = "first-token-of-the-operator"
    wait(lambda: ask("GET", "/v1/sites", token=first).status == 200, "it is in force")

    token.write_text("second-token-of-the-operator")

    assert ask("GET", "/v1/sites", token=first).status == 401
    assert ask("GET", "/v1/sites", token="second-token-of-the-operator").status == 200


def test_without_a_token_in_the_configuration_there_is_no_such_address(
    ask: Callable[..., Answer], home: Path
) -> None:
    config, new = home / "sitemapd.toml", home / "new"
    new.write_text(config.read_text().replace(f'token = "{OPERATOR}"', ""))
    new.rename(config)

    wait(lambda: ask("GET", "/v1/sites").status == 404, "it is off")
    assert ask("POST", "/v1/sites", SHOP).json["code"] == "not-found"


@pytest.mark.skipif(os.geteuid() != 0, reason="root alone can give files away")
def test_a_file_that_cannot_be_kept_as_it_is_stays(home: Path) -> None:
    """As where the web process may read the configuration, and not write it."""
    from shared.config.edit import changes
    from shared.config.edit.config_file import ConfigFile
    from shared.errors import InvalidError

    config = home / "sitemapd.toml"
    config.write_text('[sites.a]\nbase_url = "https://a.example"\nweb_root = "public"\n'
                      f'tokens = ["{TOKEN}"]\n')  # fmt: skip
    config.chmod(0o644)
    digest = hashlib.sha256(config.read_bytes()).digest()
    home.chmod(0o777)
    pid = os.fork()
    if not pid:
        os.setgid(65534)
        os.setuid(65534)
        try:
            changes.add_user(ConfigFile(config), "ann", "viewer")
        except InvalidError as error:
            os._exit(0 if "file" in {fault.rule for fault in error.faults} else 2)
        os._exit(1)

    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert hashlib.sha256(config.read_bytes()).digest() == digest
    assert [path.name for path in home.iterdir()] == ["sitemapd.toml"]
