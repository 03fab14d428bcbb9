"""F6: the power goes, and with it all that was not synced: Redis's log and the web root."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from tests.faults.deployment import Options
from tests.faults.parts import Part
from tests.faults.run import Case, Run
from tests.faults.tools.powercut import PowerCut


def _prepare(*, journalled: bool) -> Callable[[Path, ExitStack], Options]:
    def prepare(directory: Path, stack: ExitStack) -> Options:
        disk, platter = directory / "disk", directory / "platter"
        power = stack.enter_context(PowerCut(disk, platter, journalled=journalled))
        return Options(root=disk / "public", data=disk / "redis", tool=power)

    return prepare


def _cuts(run: Run, times: int) -> None:
    """The power goes at any moment; a share of the names that were not synced got through."""
    power: PowerCut = run.system.options.tool
    _settle(run.system.parts["redis"], power.path)
    for _ in range(times):
        run.progress(run.chance.randrange(20, 200))
        run.look_away()
        power.cut(run.chance.random())
        run.system.power_off()
        power.heal()
        run.injected += 1
        run.system.power_on()
        run.watch()


def _settle(redis: Part, disk: Path) -> None:
    """Make durable what was made by hand, and what Redis made at its first start: it syncs no
    directory then.
    """
    redis.end(signal.SIGTERM)
    for made in (*disk.rglob("robots.txt"), *disk.rglob("*/"), disk):
        descriptor = os.open(made, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)
    redis.wanted = True


CASES = [
    Case("F6", "power cut, journalled file system", partial(_cuts, times=50),
         _prepare(journalled=True)),
    Case("F6", "power cut, names need their own sync", partial(_cuts, times=50),
         _prepare(journalled=False)),
]  # fmt: skip
