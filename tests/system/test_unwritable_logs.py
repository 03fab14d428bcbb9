"""Log lines that cannot be written decide nothing: not an answer, not what is published (F29)."""

from __future__ import annotations

import http.client
import json
import os
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit

import pytest

from tests.file_systems import fill, small_file_system
from tests.system.driver import SITEMAPD, System, wait_until
from tests.system.parts import PARTS, Parts, servers

ENOUGH = 50


@contextmanager
def reader_gone() -> Iterator[IO[bytes]]:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb", 0) as output:
        yield output


@contextmanager
def nobody_reads() -> Iterator[IO[bytes]]:
    """A pipe that is full from the beginning."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    with suppress(BlockingIOError):
        while True:
            os.write(writer, bytes(4096))
    os.set_blocking(writer, True)
    with os.fdopen(reader, "rb", 0), os.fdopen(writer, "wb", 0) as output:
        yield output


@contextmanager
def no_room() -> Iterator[IO[bytes]]:
    with open("/dev/full", "wb", 0) as output:
        yield output


Sink = Callable[[], "contextmanager[IO[bytes]]"]
SINKS = [reader_gone, nobody_reads, no_room]


@pytest.mark.parametrize("sink", SINKS)
def test_every_part_works_on_where_no_line_can_be_written(parts: Parts, sink: Sink) -> None:
    parts.redis()
    with sink() as output:
        for name in PARTS:
            parts.part(name, output)
        wait_until(lambda: parts.ask("GET", "/healthz") == 200, "it is alive")

        answers = {parts.ask("GET", "/healthz") for _ in range(ENOUGH)}
        posted = {parts.post(f"{number}") for number in range(20)}
        refused = {parts.ask("POST", "/v1/sites/demo/events") for _ in range(ENOUGH)}

        assert answers == {200}
        assert posted == {202}
        assert refused <= {401, 411, 415}
        wait_until(lambda: all(parts.lists(f"{n}") for n in range(20)), "all is published")
        ended = {name: parts.stop(name) for name in PARTS}
    assert ended == dict.fromkeys(PARTS, 0)
    assert parts.command("dead", "list", "--json").stdout.strip() == "[]"
    assert parts.command("verify").returncode == 0


def _is_json(line: str) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except ValueError:
        return False


def test_a_full_disk_of_logs_is_waited_out(parts: Parts, tmp_path: Path) -> None:
    with small_file_system(tmp_path / "logs", "size=64k") as disk:
        parts.redis()
        filler = disk / "filler"
        with (disk / "web.log").open("ab", 0) as output:
            parts.part("web", output)
            wait_until(lambda: parts.ask("GET", "/healthz") == 200, "it is alive")
            fill(filler)
            assert {parts.ask("GET", "/healthz") for _ in range(ENOUGH)} == {200}
            assert parts.post("meanwhile") == 202
            filler.unlink()
            assert parts.ask("GET", "/healthz") == 200
            log = disk / "web.log"
            wait_until(lambda: log.read_bytes().count(b"answered") > ENOUGH, "what waited is there")
            parts.stop("web")
            lines = [line for line in log.read_text().splitlines() if line.startswith("{")]
            # Two processes write here: the one whose line was cut by the full disk goes on where
            # it ended, unless the other's came between.
            assert len([line for line in lines if not _is_json(line)]) <= 1
            assert len(lines) > ENOUGH


@pytest.mark.parametrize("sink", [nobody_reads])  # its parts with each of them: above
def test_up_works_on_where_nothing_it_says_can_be_written(tmp_path: Path, sink: Sink) -> None:
    system = System(tmp_path / "home")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        system.address = "http://{}:{}".format(*free.getsockname())
    with sink() as output:
        process = subprocess.Popen(
            [SITEMAPD, "up", "--home", system.home, "--http", urlsplit(system.address).netloc],
            stdout=output, stderr=output,
        )  # fmt: skip
        try:
            wait_until(lambda: process.poll() is not None or ready(system), "up is ready")
            assert process.poll() is None
            before = system.pid("web")
            system.kill("web")
            wait_until(lambda: system.pid("web") != before and ready(system), "web is back")
            assert process.poll() is None
        finally:
            process.terminate()
            status = process.wait(60)
    assert status == 0


def ready(system: System) -> bool:
    try:
        return system.get("/readyz")[0] == 200
    except (OSError, http.client.HTTPException):
        return False


@pytest.mark.parametrize("closed", ["2>&-", "0<&- 1>&- 2>&-"])
def test_parts_work_with_closed_outputs(parts: Parts, closed: str) -> None:
    parts.redis()
    parts.running["web"] = subprocess.Popen(
        ["sh", "-c", f'exec "$0" run web --listen "unix:$1" {closed}', SITEMAPD, parts.socket],
        env=parts.environment, cwd=parts.home,
    )  # fmt: skip

    wait_until(lambda: parts.post("a") == 202, "an event is accepted")

    assert {parts.post(f"{number}") for number in range(20)} == {202}
    assert {parts.ask("GET", "/healthz") for _ in range(20)} == {200}
    assert parts.stop("web") == 0


@pytest.mark.parametrize("command", [["status", "--json"], ["event", "example"]], ids=" ".join)
def test_a_command_whose_reader_went_ends_without_a_traceback(
    served: Parts, command: list[str]
) -> None:
    with reader_gone() as output:
        done = subprocess.run(
            [SITEMAPD, *command], stdout=output, stderr=subprocess.PIPE, text=True, timeout=60,
            env=served.environment, check=False,
        )  # fmt: skip

    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr
    assert done.returncode in {0, 1, 2}


def test_a_command_that_cannot_write_its_result_says_so_and_fails(served: Parts) -> None:
    with no_room() as output:
        done = subprocess.run(
            [SITEMAPD, "status", "--json"], stdout=output, stderr=subprocess.PIPE, text=True,
            timeout=60, env=served.environment, check=False,
        )  # fmt: skip

    assert "No space left" in done.stderr
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr
    assert done.returncode == 1


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Parts]:
    parts = Parts(tmp_path_factory.mktemp("served") / "home", servers()[-1])
    parts.redis()
    yield parts
    parts.stop("redis")
