"""Everything on one machine, with the real processes: ready, killed, stopped, continued."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from deploy.local.embedded_redis import EmbeddedServer
from deploy.local.first_run import first_event
from deploy.local.processes import marked, reap
from shared.config.settings import FILE, load
from shared.store.connection import connect
from tests.integration.conftest import wait_until

UP = """
import sys
from pathlib import Path
from deploy.local.up import up
from shared.telemetry.logs import configure
configure()
sys.exit(up(Path(sys.argv[1]), "127.0.0.1:0"))
"""


class Service:
    """One `up`, in a process of its own."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.process = subprocess.Popen(
            [sys.executable, "-c", UP, str(home)], stdout=subprocess.PIPE, text=True
        )
        self.said = ""
        self.address = ""
        assert self.process.stdout
        for line in self.process.stdout:
            if line.startswith("ready "):
                self.address = line.split()[1]
                return
            self.said += line
        raise AssertionError(f"not ready: {self.said}")

    def get(self, path: str) -> tuple[int, str]:
        connection = http.client.HTTPConnection(self.address.removeprefix("http://"), timeout=30)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        except (OSError, http.client.HTTPException):
            return 0, ""
        finally:
            connection.close()

    def pids(self) -> dict[str, int]:
        found: dict[str, int] = json.loads((self.home / "run" / "pids.json").read_text())
        return found

    def send(self, shell: str) -> str:
        text = first_event.signed_example(load(self.home / FILE), "demo", self.address)
        done = subprocess.run([shell, "-c", text], capture_output=True, text=True, check=True)
        return done.stdout

    def settled(self) -> bool:
        with connect(EmbeddedServer(self.home).url, 2.0) as client:
            listed = "hello-world" in self.get("/posts-1.xml")[1]
            return listed and not client.xlen("{demo}:inbox") and not client.zcard("{demo}:dirty")

    def end(self, number: signal.Signals) -> int:
        self.process.send_signal(number)
        status = self.process.wait(60)
        assert self.process.stdout
        self.process.stdout.close()
        return status


def mark_of(home: Path) -> str:
    found = Path(f"/proc/{json.loads((home / 'run' / 'pids.json').read_text())['redis']}/environ")
    (variable,) = (v for v in found.read_bytes().split(b"\0") if v.startswith(b"SITEMAPD_RUN="))
    return variable.decode().partition("=")[2].partition("#")[0]


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    service = Service(tmp_path)
    run = mark_of(tmp_path)
    yield service
    if service.process.poll() is None:
        service.end(signal.SIGKILL)
    reap(run)


@pytest.mark.parametrize("shell", ["bash", "dash"])
def test_the_example_is_published(service: Service, shell: str) -> None:
    answer = json.loads(service.send(shell))
    assert answer["accepted"] == 1
    # written last, after the shard and the index
    wait_until(lambda: "Sitemap: " in service.get("/robots.txt")[1], "robots.txt names the sitemap")

    assert "/posts-1.xml" in service.get("/sitemap.xml")[1]
    assert "hello-world" in service.get("/posts-1.xml")[1]
    assert service.get("/openapi.json")[0] == 200
    assert service.get("/sitemapd.toml")[0] == 404


def test_no_secret_is_printed_where_a_service_manager_may_log_it(
    service: Service, tmp_path: Path
) -> None:
    """RELIABILITY T30; what a terminal shows: tests/system/test_first_minute.py."""
    key = load(tmp_path / FILE).sites["demo"].secrets[0].key(datetime.now(UTC))
    assert key is not None
    assert "serves" in service.said
    assert key.hex() not in service.said
    assert "once=" not in service.said


def test_each_killed_child_comes_back_and_work_goes_on(service: Service) -> None:
    for name, pid in service.pids().items():
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda name=name, pid=pid: service.pids().get(name) != pid, f"{name} is back")  # type: ignore[misc]
    wait_until(lambda: service.get("/readyz")[0] == 200, "ready again")
    service.send("bash")

    wait_until(lambda: "hello-world" in service.get("/posts-1.xml")[1], "the page is listed")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_everything_with_status_zero(
    service: Service, number: signal.Signals
) -> None:
    run = mark_of(service.home)

    assert service.end(number) == 0
    assert marked(run) == {}
    assert service.pids() == {}


def test_nothing_outlives_a_killed_supervisor(service: Service) -> None:
    run = mark_of(service.home)
    assert set(marked(run).values()) == {"guard", "redis", "worker", "web"}
    service.end(signal.SIGKILL)

    wait_until(lambda: not marked(run), "all are gone")


def test_the_next_start_takes_over_and_continues(service: Service) -> None:
    service.send("bash")
    wait_until(service.settled, "all is published and committed")
    marker = service.home / "public" / ".sitemapd"
    wait_until(lambda: not marker.read_text().endswith(" 0]"), "the marker counts the publish")
    before = {path.name: path.read_bytes() for path in (service.home / "public").iterdir()}
    configuration = (service.home / "sitemapd.toml").read_bytes()
    left = service.pids()
    # killed together, so that only the next start can clear up
    os.kill(left["guard"], signal.SIGSTOP)
    service.end(signal.SIGKILL)
    os.kill(left["guard"], signal.SIGKILL)

    again = Service(service.home)
    assert not set(left.values()) & set(again.pids().values())
    assert "hello-world" in again.get("/posts-1.xml")[1]
    assert again.end(signal.SIGTERM) == 0

    assert (service.home / "sitemapd.toml").read_bytes() == configuration
    assert {p.name: p.read_bytes() for p in (service.home / "public").iterdir()} == before
