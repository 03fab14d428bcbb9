"""`sitemapd up` stands a disk that is full, a terminal that goes, a Ctrl-C at any moment."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.system.driver import System, wait_until

BEGIN = "print('begun', flush=True); from deploy.cli.entry import main; main()"
UP = [sys.executable, "-c", BEGIN, "up", "--http", "127.0.0.1:0", "--home"]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 48 MiB."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=48m,mode=755", "none", str(place)]
    if os.geteuid() != 0 or not shutil.which("mount"):
        pytest.skip("only root can mount a small file system to fill")
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("this machine lets nobody mount a file system")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def fill(path: Path) -> None:
    """Take what is left of the disk."""
    try:
        with path.open("wb", 0) as file:
            while True:
                file.write(bytes(4096))
    except OSError:
        pass


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

        wait_until(lambda: ready(system), "it is ready again", 60)
        system.send({"type": "upsert", "loc": f"{system.base}/b"})
        wait_until(lambda: len(list(system.published())) == 2, "all goes on")
    finally:
        filler.unlink(missing_ok=True)
        assert system.stop() == 0


def test_a_terminal_that_goes_ends_it_in_order(system: System) -> None:
    worker = system.pid("worker")
    system.process.send_signal(signal.SIGHUP)

    assert system.process.wait(60) == 0
    system.log.close()
    said = printed(system)
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
