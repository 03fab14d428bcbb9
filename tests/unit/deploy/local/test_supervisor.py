"""Supervision, with real small processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from deploy.local.log_file import LogBounds, LogFile
from deploy.local.processes import Child, hold, mark, marked, reap, reap_listed, replace
from deploy.local.supervisor import BACKOFF_S, Signals, Supervisor
from shared.errors import ServerStartError

FOREVER = [sys.executable, "-c", "import time\nwhile True: time.sleep(60)"]
PARENT = """
import subprocess, sys, time
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print("born", flush=True)
time.sleep(600)
"""
FAMILY = [sys.executable, "-c", PARENT]
IGNORING = """
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("deaf", flush=True)
time.sleep(600)
"""
DEAF = [sys.executable, "-c", IGNORING]


def wait_until(fact: Callable[[], object], what: str, seconds: float = 20.0) -> None:
    deadline = time.monotonic() + seconds
    while not fact():
        assert time.monotonic() < deadline, f"not in {seconds} s: {what}"
        time.sleep(0.01)


@pytest.fixture
def run(tmp_path: Path) -> Iterator[str]:
    """The mark of this test's processes; none may be left behind."""
    run = f"test-{os.getpid()}-{tmp_path.name}"
    yield run
    assert reap(run) == []


def child(
    run: str, folder: Path, name: str, command: list[str],
    *, grace: float = 5.0, bounds: LogBounds = LogBounds(),  # noqa: B008  # immutable
) -> Child:  # fmt: skip
    log, env = folder / f"{name}.log", os.environ | mark(run, name)
    return Child(name, command, log, env, grace=grace, bounds=bounds)


@pytest.fixture
def supervisor(tmp_path: Path) -> Iterator[Supervisor]:
    supervisor = Supervisor(tmp_path / "pids.json")
    yield supervisor
    supervisor.stop()


def listed(tmp_path: Path) -> dict[str, int]:
    found: dict[str, int] = json.loads((tmp_path / "pids.json").read_text())
    return found


def test_the_list_names_every_child(run: str, tmp_path: Path, supervisor: Supervisor) -> None:
    one, two = (child(run, tmp_path, name, FOREVER) for name in ("one", "two"))
    supervisor.add(one)
    supervisor.add(two)

    assert listed(tmp_path) == {"one": one.pid, "two": two.pid}
    supervisor.stop()
    assert listed(tmp_path) == {}


def test_a_killed_child_comes_back_under_a_new_id(
    run: str, tmp_path: Path, supervisor: Supervisor
) -> None:
    one = child(run, tmp_path, "one", FOREVER)
    supervisor.add(one)
    first = one.pid
    assert first
    os.kill(first, signal.SIGKILL)

    def back() -> bool:
        supervisor.tend()
        return one.pid != first

    wait_until(back, "restarted")
    assert listed(tmp_path) == {"one": one.pid}


def test_restarts_come_slower_and_slower(run: str, tmp_path: Path, supervisor: Supervisor) -> None:
    supervisor.add(child(run, tmp_path, "one", ["false"]))
    begun = time.monotonic()

    def died_three_times() -> bool:
        supervisor.tend()
        return supervisor.dying(3) is not None

    wait_until(died_three_times, "three deaths")
    assert time.monotonic() - begun >= BACKOFF_S * (1 + 2)
    assert supervisor.dying(4) is None


def test_a_program_that_vanished_is_tried_again(
    run: str, tmp_path: Path, supervisor: Supervisor
) -> None:
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\nexit 1\n")
    program.chmod(0o755)
    supervisor.add(child(run, tmp_path, "one", [str(program)]))
    program.unlink()

    def died_twice() -> bool:
        supervisor.tend()
        return supervisor.dying(2) is not None

    wait_until(died_twice, "a restart that failed")
    program.symlink_to(sys.executable)

    def back() -> bool:
        supervisor.tend()
        return supervisor.dying(3) is not None

    wait_until(back, "executed again")


def test_what_a_dead_child_had_started_dies_with_it(run: str, tmp_path: Path) -> None:
    one = child(run, tmp_path, "one", FAMILY)
    one.launch()
    wait_until(lambda: "born" in one.output() and len(marked(run)) == 2, "parent and child")
    assert one.pid
    os.kill(one.pid, signal.SIGKILL)
    wait_until(lambda: one.poll() is not None, "the parent is dead")

    wait_until(lambda: not marked(run), "its child is dead")


def test_a_child_that_ignores_sigterm_is_killed_after_its_grace(run: str, tmp_path: Path) -> None:
    one = child(run, tmp_path, "one", DEAF, grace=0.2)
    one.launch()
    wait_until(lambda: "deaf" in one.output(), "it ignores SIGTERM")
    one.stop()

    assert one.poll() == -signal.SIGKILL


def test_leftovers_of_a_run_are_found_and_ended(run: str, tmp_path: Path) -> None:
    started = [child(run, tmp_path, name, FAMILY) for name in ("one", "redis")]
    for each in started:
        each.launch()
    wait_until(lambda: len(marked(run)) == 4, "two families")

    assert reap(run) == ["one", "redis"]
    assert [each.poll() for each in started] == [-signal.SIGTERM] * 2


def test_leftovers_of_another_run_are_left_alone(run: str, tmp_path: Path) -> None:
    other = child(f"{run}-other", tmp_path, "one", FOREVER)
    other.launch()

    assert reap(run) == []
    assert other.poll() is None
    other.stop()


def test_without_proc_the_list_ends_them(run: str, tmp_path: Path) -> None:
    one = child(run, tmp_path, "one", FAMILY)
    one.launch()
    wait_until(lambda: len(marked(run)) == 2, "parent and child")
    replace(tmp_path / "pids.json", json.dumps({"one": one.pid, "guard": os.getpid()}))

    reap_listed(tmp_path / "pids.json")

    wait_until(lambda: not marked(run), "the session is gone")
    one.stop()


def test_the_guard_ends_what_its_supervisor_left(run: str, tmp_path: Path) -> None:
    one = child(run, tmp_path, "one", FAMILY)
    one.launch()
    wait_until(lambda: len(marked(run)) == 2, "parent and child")
    command = [sys.executable, "-m", "deploy.local.orphan_reaper", run, str(tmp_path / "pids.json")]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as guard:
        assert guard.stdin
        guard.stdin.close()

    assert marked(run) == {}
    one.stop()


def test_a_lock_names_its_holder(tmp_path: Path) -> None:
    with (
        hold(tmp_path / "lock"),
        pytest.raises(ServerStartError, match=f"process {os.getpid()}"),
        hold(tmp_path / "lock"),
    ):
        pass
    with hold(tmp_path / "lock"):
        pass


def test_a_signal_ends_a_wait_at_once_and_says_stop() -> None:
    with Signals() as signals:
        os.kill(os.getpid(), signal.SIGCHLD)
        signals.wait(60)
        assert not signals.stopping
        os.kill(os.getpid(), signal.SIGTERM)
        signals.wait(60)
        assert signals.stopping


def test_a_long_log_is_put_aside(run: str, tmp_path: Path) -> None:
    (tmp_path / "one.log").write_bytes(b"x" * (10 * 1024 * 1024 + 1))
    one = child(run, tmp_path, "one", ["echo", "new"])
    one.launch()
    wait_until(lambda: one.poll() is not None, "echo ended")

    assert one.output() == "new"
    assert (tmp_path / "one.log.1").stat().st_size == 10 * 1024 * 1024


ON_DEMAND = """
import pathlib, sys, time
for number in range(20):
    while not pathlib.Path(sys.argv[1], str(number)).exists():
        time.sleep(0.005)
    print(f"{number:02}" + "x" * 4096, flush=True)
time.sleep(600)
"""


def test_logs_are_bounded_while_their_process_runs(
    run: str, tmp_path: Path, supervisor: Supervisor
) -> None:
    command = [sys.executable, "-c", ON_DEMAND, str(tmp_path)]
    one = child(run, tmp_path, "one", command, bounds=LogBounds(10_000, 1))
    supervisor.add(one)
    sizes, old = [], tmp_path / "one.log.1"

    for number in range(20):
        (tmp_path / str(number)).touch()
        wait_until(lambda number=number: f"{number:02}xx" in one.output(), "it is written")  # type: ignore[misc]
        sizes.append(one.log.stat().st_size)
        supervisor.tend()

    assert max(sizes) <= 10_000
    assert old.stat().st_size <= 10_000
    assert one.poll() is None


def test_a_log_that_grew_far_beyond_its_bound_keeps_its_end(run: str, tmp_path: Path) -> None:
    one = child(run, tmp_path, "one", ["true"], bounds=LogBounds(1_000, 1))
    one.log.write_bytes(b"a" * 50_000 + b"z" * 10)

    one.launch()
    one.stop()

    assert one.log.read_bytes() == b""
    assert (tmp_path / "one.log.1").read_bytes() == b"a" * 990 + b"z" * 10


NUMBERED = """
import os
for number in range(2000):
    os.write(1, b"%d %s\\n" % (number, b"x" * (number % 60)))
"""


def test_no_line_is_lost_cut_or_doubled_at_a_rotation(run: str, tmp_path: Path) -> None:
    """Of two processes that write at once, neither of which knows of the rotation."""
    twice = f"import os\nother = os.fork()\n{NUMBERED}\nif other: os.wait()"
    bounds = LogBounds(1_000, 500)
    one = child(run, tmp_path, "one", [sys.executable, "-c", twice], bounds=bounds)
    one.launch()
    wait_until(lambda: one.poll() is not None, "it has ended")
    files: list[Path] = []

    def written() -> list[bytes]:
        files[:] = [one.log, *tmp_path.glob("one.log.*")]
        try:
            return [line for file in files for line in file.read_bytes().splitlines()]
        except FileNotFoundError:  # renamed meanwhile
            return []

    expected = sorted(2 * [b"%d %s" % (n, b"x" * (n % 60)) for n in range(2000)])
    wait_until(lambda: sorted(written()) == expected, "every line is there once")
    assert len(files) > 50
    assert max(file.stat().st_size for file in files) <= bounds.size


def test_a_process_whose_lines_find_no_room_goes_on(run: str, tmp_path: Path) -> None:
    one = child(run, tmp_path, "one", [sys.executable, "-c", NUMBERED * 5])
    one.log.symlink_to("/dev/full")

    one.launch()

    wait_until(lambda: one.poll() == 0, "it has written more than a pipe holds")


def test_lines_that_found_no_room_are_counted(tmp_path: Path) -> None:
    log = LogFile(tmp_path / "later" / "one.log", LogBounds())
    reader, writer = os.pipe()
    pump = log.pump(os.fdopen(reader, "rb", 0))
    os.write(writer, b"one\ntwo\n")
    wait_until(lambda: log.lost == 2, "they are not written")

    log.path.parent.mkdir()
    os.write(writer, b"three\n")
    os.close(writer)
    pump.join()

    assert log.path.read_text() == "log lines lost: 2\nthree\n"


def test_children_are_tended_though_they_cannot_be_listed_and_are_listed_later(
    run: str, tmp_path: Path
) -> None:
    (tmp_path / "pids.json").mkdir()
    (tmp_path / "pids.json" / "in-the-way").touch()
    supervisor = Supervisor(tmp_path / "pids.json")
    one = child(run, tmp_path, "one", FOREVER)
    supervisor.add(one)
    first = one.pid
    assert first
    os.kill(first, signal.SIGKILL)

    def back() -> bool:
        supervisor.tend()
        return one.pid != first and one.poll() is None

    wait_until(back, "restarted")
    (tmp_path / "pids.json" / "in-the-way").unlink()
    (tmp_path / "pids.json").rmdir()
    supervisor.tend()
    assert listed(tmp_path) == {"one": one.pid}
    supervisor.stop()


SIGNALS = """
import signal, sys
from deploy.local.supervisor import Signals
# Whoever runs the tests may ignore it, too: each case says what it begins with.
signal.signal(signal.SIGHUP, signal.SIG_IGN if sys.argv[1] == "ignored" else signal.SIG_DFL)
with Signals() as signals:
    print("here", flush=True)
    while not signals.stopping:
        signals.wait(600)
"""


@pytest.mark.parametrize(("hangup", "number"), [("ignored", 15), ("heard", 1)])
def test_a_hangup_says_stop_unless_it_is_ignored_as_nohup_has_it(hangup: str, number: int) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", SIGNALS, hangup], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        assert process.stdout.readline() == "here\n"
        status = Path(f"/proc/{process.pid}/status").read_text()
        (mask,) = (line.split()[1] for line in status.splitlines() if line.startswith("SigIgn"))
        assert (int(mask, 16) & 1) == (hangup == "ignored")
        process.send_signal(number)
        assert process.wait(20) == 0
