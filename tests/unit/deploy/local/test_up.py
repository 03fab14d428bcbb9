"""What `up` refuses before it starts anything."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from deploy.local.processes import hold
from deploy.local.up import commands, up
from shared.errors import ConfigError, ServerStartError


@pytest.mark.parametrize(
    "http", ["0.0.0.0:8080", "192.0.2.1:80", "[::]:8080", "[2001:db8::1]:80", "example.com:80"]
)
def test_an_address_others_can_reach_needs_a_proxy(tmp_path: Path, http: str) -> None:
    with pytest.raises(ConfigError, match="T12"):
        up(tmp_path / "home", http)
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize(
    "http", ["", "127.0.0.1", ":8080", "127.0.0.1:", "127.0.0.1:http", "127.0.0.1:65536", "::1"]
)
def test_an_address_that_is_none_is_refused(tmp_path: Path, http: str) -> None:
    with pytest.raises(ConfigError):
        up(tmp_path / "home", http)


def test_a_port_in_use_is_refused(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        http = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(ServerStartError, match=f"cannot listen on {http}"):
            up(tmp_path, http)


def test_a_second_up_on_the_same_directory_is_refused(tmp_path: Path) -> None:
    with hold(tmp_path / "lock"), pytest.raises(ServerStartError, match="in use by process"):
        up(tmp_path, "127.0.0.1:0")


def test_a_child_imports_nothing_from_where_the_user_is() -> None:
    named = commands(Path("/etc/sitemapd.toml"), "127.0.0.1", 8080)

    assert list(named) == ["worker", "web"]
    assert all("-P" in command for command in named.values())
