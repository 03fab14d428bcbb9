"""Small file systems that are mounted for a test, and filled."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def mounted(place: Path, *options: str) -> Iterator[Path]:
    """Mount on `place`, which is created if it is missing, until the end; skip where that is not
    allowed.
    """
    if os.geteuid() != 0 or not shutil.which("mount"):
        pytest.skip("only root can mount a file system")
    place.mkdir(exist_ok=True)
    done = subprocess.run(["mount", *options, place], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"no file system can be mounted here: {done.stderr.strip()}")
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", place], check=True)


@contextmanager
def small_file_system(place: Path, options: str = "size=128k") -> Iterator[Path]:
    """Mount a file system in memory on `place`, of 128 KiB unless `options` say otherwise."""
    with mounted(place, "-t", "tmpfs", "-o", f"{options},mode=755", "none"):
        yield place


def fill(path: Path) -> None:
    """Write `path` until its file system is full."""
    with contextlib.suppress(OSError), path.open("wb", 0) as file:
        while True:
            file.write(bytes(4096))
