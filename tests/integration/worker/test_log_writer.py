"""Log lines of a process whose reader stalls, comes back or is gone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from shared.telemetry.log_writer import MOST_LINES

ROOT = Path(__file__).resolve().parents[3]
BURST = MOST_LINES + 2000
PROGRAM = """
import sys
from shared.telemetry import logs
logs.configure(json_lines=True)
log = logs.logger("test")
for number in range({burst}):
    log.info("said", number=number, filling="x" * 100)
print("all said", flush=True)
sys.stdin.readline()
log.info("said", number=-1)
{end}
"""


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    reader, writer = os.pipe()
    yield reader, writer
    for descriptor in (reader, writer):
        try:
            os.close(descriptor)
        except OSError:
            continue


def start(writer: int, burst: int = BURST, end: str = "") -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM.format(burst=burst, end=end)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=writer, text=True, cwd=ROOT,
    )  # fmt: skip


def all_said(process: subprocess.Popen[str]) -> bool:
    assert process.stdout is not None
    return process.stdout.readline() == "all said\n"


def finish(process: subprocess.Popen[str]) -> int:
    process.communicate("go\n", timeout=60)
    return process.returncode


def read(reader: int) -> list[dict[str, Any]]:
    with os.fdopen(reader, "rb") as file:
        return [json.loads(line) for line in file]


def test_lines_that_were_lost_are_counted_and_the_others_come_whole_and_in_order(
    pipe: tuple[int, int],
) -> None:
    reader, writer = pipe
    process = start(writer, end="import time; time.sleep(60)")
    os.close(writer)
    assert all_said(process)
    assert process.stdin is not None
    said: list[int] = []
    lost = 0
    with os.fdopen(reader, "rb") as file:
        while len(said) + lost < BURST:
            line = json.loads(file.readline())
            if line["event"] == "log lines lost":
                lost += line["lines"]
            else:
                said.append(line["number"])
        process.stdin.write("go\n")
        process.stdin.flush()
        after = json.loads(file.readline())
        process.kill()
        process.communicate()

    assert said == sorted(said)
    assert len(said) + lost == BURST
    assert lost > 0
    assert after["number"] == -1


def test_the_last_lines_of_a_process_are_written(pipe: tuple[int, int]) -> None:
    reader, writer = pipe
    process = start(writer, burst=100)
    os.close(writer)
    assert all_said(process)

    assert finish(process) == 0

    assert [each["number"] for each in read(reader)] == [*range(100), -1]


@pytest.mark.parametrize("end", ["", "raise SystemExit(3)"])
def test_a_process_ends_although_nobody_reads(pipe: tuple[int, int], end: str) -> None:
    process = start(pipe[1], end=end)
    assert all_said(process)

    assert finish(process) == (3 if end else 0)


def test_a_process_works_on_when_its_reader_went(pipe: tuple[int, int]) -> None:
    reader, writer = pipe
    process = start(writer, burst=10)
    os.close(reader)
    assert all_said(process)

    assert finish(process) == 0


FORKING = """
import multiprocessing, os
from shared.telemetry import logs
logs.configure(json_lines=True, streams=True)
log = logs.logger("test")
log.info("said", by="parent", number=0)
def work():
    logs.configure(json_lines=True, streams=True)
    log.info("said", by="child", number=1)
    print("printed")
for _ in range(20):
    child = multiprocessing.get_context("fork").Process(target=work)
    child.start()
    child.join()
    assert child.exitcode == 0
log.info("said", by="parent", number=2)
"""


def test_each_line_of_a_forked_process_is_written_once(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with log.open("wb") as file:
        subprocess.run(
            [sys.executable, "-c", FORKING], stdout=file, stderr=file, cwd=ROOT, check=True
        )

    lines = log.read_text().splitlines()
    assert lines.count("printed") == 20
    said = [json.loads(line) for line in lines if line != "printed"]
    assert [each["by"] for each in said].count("child") == 20
    assert [each["number"] for each in said if each["by"] == "parent"] == [0, 2]


def test_texts_that_utf_8_cannot_hold_are_escaped(tmp_path: Path) -> None:
    log = tmp_path / "log"
    program = (
        "from shared.telemetry import logs; import sys; logs.configure(streams=True);"
        "sys.stderr.write('a\\udcffb\\n')"
    )
    with log.open("wb") as file:
        subprocess.run([sys.executable, "-c", program], stderr=file, cwd=ROOT, check=True)

    assert log.read_bytes() == b"a\\udcffb\n"
