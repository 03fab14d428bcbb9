"""The place of the web server's socket, before it is taken."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from deploy.web.server import clear_socket
from shared.errors import ServerStartError


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "web.sock"


def test_what_a_killed_server_left_is_removed(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as killed:
        killed.bind(str(path))
    assert path.is_socket()

    clear_socket(path)

    assert not path.exists()
    clear_socket(path)


def test_a_server_that_still_listens_is_left_alone(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as living:
        living.bind(str(path))
        living.listen()

        with pytest.raises(ServerStartError, match="another process listens"):
            clear_socket(path)

    assert path.is_socket()


def test_a_file_that_is_no_socket_is_never_removed(path: Path) -> None:
    path.write_text("mine")

    with pytest.raises(ServerStartError, match="no socket"):
        clear_socket(path)

    assert path.read_text() == "mine"
