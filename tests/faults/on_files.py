"""Faults of disks and files: F8, F9, F10, F23."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from tests.faults.deployment import Options
from tests.faults.parts import until
from tests.faults.run import Case, Run
from tests.faults.tools.disk import SmallDisk

HELD_S = 3.0


def _prepare(size: str | None, inodes: int | None) -> Callable[[Path, ExitStack], Options]:
    def prepare(directory: Path, stack: ExitStack) -> Options:
        disk = stack.enter_context(SmallDisk(directory / "public", size, inodes))
        return Options(root=disk.path, site="check_interval = 1", tool=disk)

    return prepare


def _while(run: Run, spoil: Callable[[SmallDisk], None], mend: Callable[[SmallDisk], None]) -> None:
    """Events are taken all the time, temporary files go in the end; the reader sees no fault."""
    disk: SmallDisk = run.system.options.tool
    for _ in range(5):
        run.progress(run.chance.randrange(20, 100))
        spoil(disk)
        run.injected += 1
        run.progress(50)
        time.sleep(HELD_S)
        mend(disk)
    run.rest()
    until(lambda: not list(disk.path.glob(".sitemapd-*")), "no temporary files", 60)


def _full(run: Run) -> None:
    _while(run, SmallDisk.fill, SmallDisk.free)


def _read_only(run: Run) -> None:
    _while(run, SmallDisk.read_only, SmallDisk.writable)


def _immutable(run: Run) -> None:
    _while(run, lambda disk: disk.immutable(disk.path), lambda disk: disk.mutable(disk.path))


def _store_full(run: Run) -> None:
    """No room for Redis's log: it ends rather than lose a write, and starts again when there is."""
    disk: SmallDisk = run.system.options.tool
    for _ in range(5):
        run.progress(run.chance.randrange(20, 100))
        disk.fill()
        run.injected += 1
        run.refused(1)
        time.sleep(HELD_S)
        disk.free()
        until(run.system.ready, "Redis is back", 10)


def _by_hand(run: Run) -> None:
    """Removed, edited, cut short: put right without any event (F23)."""
    root, chance = run.system.root, run.chance
    run.progress(300)
    run.rest()
    run.converge()
    run.look_away()
    for spoil in (_remove, _edit, _cut) * 2:
        shards = [path for path in root.glob("*.xml") if not path.name.startswith("sitemap")]
        for path in (chance.choice(shards), root / "sitemap.xml"):
            spoil(path)
            run.injected += 1
    (root / "sitemap.css").unlink()
    run.injected += 1
    seconds = until(lambda: not run.system.command("verify").returncode, "verify says equal", 60)
    run.notes.append(f"put right in {seconds:.1f} s")


def _remove(path: Path) -> None:
    path.unlink(missing_ok=True)


def _edit(path: Path) -> None:
    if path.exists():
        path.write_bytes(path.read_bytes().replace(b"example.com", b"example.org", 1))


def _cut(path: Path) -> None:
    if path.exists():
        os.truncate(path, path.stat().st_size // 2)


def _often(_directory: Path, _stack: ExitStack) -> Options:
    return Options(site="check_interval = 1")


def _small_store(directory: Path, stack: ExitStack) -> Options:
    disk = stack.enter_context(SmallDisk(directory / "redis", "40m"))
    return Options(data=disk.path, tool=disk)


CASES = [
    Case("F8", "the disk of Redis full", _store_full, _small_store),
    Case("F9", "web root full", _full, _prepare("32m", None)),
    Case("F9", "web root out of inodes", _full, _prepare(None, 1_000)),
    Case("F10", "web root read-only", _read_only, _prepare("32m", None)),
    Case("F10", "web root immutable", _immutable, _prepare("32m", None)),
    Case("F23", "files removed, edited, cut short by hand", _by_hand, _often),
]
