"""Faults of the web root: F9, F10."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from tests.faults.deployment import Options
from tests.faults.run import Case, Run
from tests.faults.tools.disk import SmallDisk

HELD_S = 3.0


def _prepare(size: str | None, inodes: int | None) -> Callable[[Path, ExitStack], Options]:
    def prepare(directory: Path, stack: ExitStack) -> Options:
        disk = stack.enter_context(SmallDisk(directory / "public", size, inodes))
        return Options(root=disk.path, tool=disk)

    return prepare


def _while(run: Run, spoil: Callable[[SmallDisk], None], mend: Callable[[SmallDisk], None]) -> None:
    """The old files stay, temporary ones go, events are taken all the time."""
    disk: SmallDisk = run.system.options.tool
    for _ in range(5):
        run.progress(run.chance.randrange(20, 100))
        spoil(disk)
        before = _contents(disk.path)
        run.injected += 1
        run.progress(50)
        time.sleep(HELD_S)
        run.expect(not list(disk.path.glob(".sitemapd-*")), "temporary files were left")
        run.expect(before == _contents(disk.path), "files changed on a disk that takes none")
        mend(disk)


def _contents(root: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in root.glob("*.xml")}


def _full(run: Run) -> None:
    _while(run, SmallDisk.fill, SmallDisk.free)


def _read_only(run: Run) -> None:
    _while(run, SmallDisk.read_only, SmallDisk.writable)


def _immutable(run: Run) -> None:
    _while(run, lambda disk: disk.immutable(disk.path), lambda disk: disk.mutable(disk.path))


CASES = [
    Case("F9", "web root full", _full, _prepare("2m", None)),
    Case("F9", "web root out of inodes", _full, _prepare(None, 40)),
    Case("F10", "web root read-only", _read_only, _prepare("4m", None)),
    Case("F10", "web root immutable", _immutable, _prepare("4m", None)),
]
