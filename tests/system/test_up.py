"""`sitemapd up` stands a disk that is full, a terminal that goes, a Ctrl-C at any moment."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.file_systems import fill, small_file_system
from tests.system.driver import System, wait_until

BEGIN = "import sitemapd; print('begun', flush=True); sitemapd.main()"
UP = [sys.executable, "-c", BEGIN, "up", "--http", "127.0.0.1:0", "--home"]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    with small_file_system(tmp_path / "disk", "size=48m") as place:
        yield place


def printed(system: System) -> str:
    return (system.home.parent / f"{system.home.name}.log").read_text()


def ready(system: System) -> bool:
    with contextlib.suppress(OSError):
        return system.get("/readyz")[0] == 200
    return False


def test_f29_a_full_disk_is_waited_out(small_disk: Path) -> None:
    """That of the home, of the logs and of what `up` itself prints to."""
    system = System(small_disk / "home")
    system.start()
    filler = small_disk / "filler"
    try:
        system.send({"type": "upsert", "loc": f"{system.base}/a"})
        wait_until(lambda: list(system.published()) == [f"{system.base}/a"], "it is published")
        log = system.home / "logs" / "web.log"
        with log.open("ab") as file:
            file.truncate(11 * 1024 * 1024)
        fill(filler)
        for name in ("redis", "worker", "web", "guard"):
            os.kill(system.pid(name), signal.SIGKILL)
        wait_until(lambda: log.stat().st_size < 1024 * 1024, "the log was cut")
        fill(filler)
        until = time.monotonic() + 8  # some rounds of restarts, of which none can succeed
        wait_until(lambda: system.process.poll() is not None or time.monotonic() > until, "rounds")
        assert system.process.poll() is None

        filler.unlink()

        wait_until(lambda: ready(system), "it is ready again")
        system.send({"type": "upsert", "loc": f"{system.base}/b"})
        wait_until(lambda: len(list(system.published())) == 2, "all goes on")
    finally:
        filler.unlink(missing_ok=True)
        assert system.stop() == 0


def test_a_terminal_that_goes_ends_it_in_order(tmp_path: Path) -> None:
    """Its side of a terminal is its controlling one, as for what is started in a window."""
    system, log = System(tmp_path / "home"), tmp_path / "log"
    leader = "import os, sys; os.close(os.open(os.ttyname(0), os.O_RDWR)); " + BEGIN
    leader = leader.replace("print('begun', flush=True); ", "")
    master, slave = pty.openpty()
    with log.open("wb") as written:
        process = subprocess.Popen(
            [sys.executable, "-c", leader, "up", "--http", "127.0.0.1:0", "--home", system.home],
            stdin=slave, stdout=written, stderr=written, start_new_session=True,
            cwd=Path(__file__).resolve().parents[2],
        )  # fmt: skip
    os.close(slave)
    wait_until(lambda: "ready" in log.read_text(), "it is ready")
    worker = system.pid("worker")

    os.close(master)

    assert process.wait(60) == 0
    said = log.read_text()
    assert "died" not in said
    assert "Traceback" not in said
    assert not Path(f"/proc/{worker}").exists()


def test_a_worker_that_is_asked_to_stop_ends_and_has_not_died(system: System) -> None:
    worker = system.pid("worker")
    assert system.run("workers", "stop", "local").returncode == 0

    wait_until(lambda: system.pid("worker") != worker, "it is started again")
    assert "died" not in printed(system)
    assert "ended" in printed(system)


@pytest.mark.parametrize("after_s", [0.02, 0.1, 0.2, 0.4, 0.7, 1.0, 1.5, 2.0, 3.0])
def test_ctrl_c_ends_it_without_a_word_whenever_it_comes(tmp_path: Path, after_s: float) -> None:
    process = subprocess.Popen(
        [*UP, str(tmp_path / "home")], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        cwd=Path(__file__).resolve().parents[2], start_new_session=True,
    )  # fmt: skip
    assert process.stdout
    assert process.stdout.readline() == "begun\n"
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(after_s)
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=60)

    assert process.returncode in {0, 130}
    assert "Traceback" not in said
    assert "died" not in said
    assert "ready" in said or len(said.splitlines()) < 20


def test_logs_are_rotated_within_their_bounds_and_no_line_is_lost(tmp_path: Path) -> None:
    system = System(tmp_path / "home")
    system.options += ["--log-mb", "0.01", "--log-files", "99"]
    system.start()
    try:
        for number in range(200):
            system.send({"type": "upsert", "loc": f"{system.base}/{number}"})
        system.quiet()
    finally:
        system.end()

    files = [*(system.home / "logs").glob("web.log*")]
    said = [line for file in files for line in file.read_text().splitlines()]
    lines = [json.loads(line) for line in said if not line.startswith("[")]  # of the web server
    accepted = [line["delivery"] for line in lines if line.get("status") == 202]
    assert len(files) > 3
    assert max(file.stat().st_size for file in files) <= 0.01 * 1024 * 1024
    assert len(set(accepted)) == len(accepted) == 200
