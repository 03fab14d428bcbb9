"""A wrong wall clock for the app, for the store, or for both (RELIABILITY F12).

A library is preloaded into each process that is started with `environment()`; it works for Python,
for Rust on glibc and for both stores, not for statically linked programs. The monotonic clock stays
right. The kernel stamps files by its own clock, so their mtimes, and utimes to "now", are not
shifted. A store looks at the clock once per turn of its event loop, ten times a second when idle.
"""

from __future__ import annotations

import mmap
import os
import struct
import subprocess
from pathlib import Path
from typing import Self

from tests.faults.tools import needs
from tests.faults.tools.needs import ToolError

_SOURCE = Path(__file__).with_name("clock.c")
_LAYOUT = struct.Struct("@qq")


class Clock:
    """Two clocks, right at first; the library and their file lie in `directory`.

    The directory must stand for as long as any process uses them, and be readable by its account.
    """

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._library = directory.resolve() / "clock.so"
        self._file = directory.resolve() / "clock.shift"
        command = [
            needs.program("cc"), "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC",
            "-o", str(self._library), str(_SOURCE), "-ldl", "-lpthread",
        ]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise ToolError(f"cc: {done.stderr}")
        self._file.write_bytes(_LAYOUT.pack(0, 0))
        self._file.chmod(0o644)
        with self._file.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), _LAYOUT.size)

    def environment(self) -> dict[str, str]:
        """What a process must be started with, and hand on to its children."""
        already = os.environ.get("LD_PRELOAD", "").split(":")
        preload = dict.fromkeys([str(self._library), *filter(None, already)])
        return {"LD_PRELOAD": ":".join(preload), "FAULTS_CLOCK": str(self._file)}

    def shift(self, app: float = 0, store: float = 0) -> None:
        """From now on the clocks differ from the true time by so many seconds."""
        self._map[:] = _LAYOUT.pack(int(app * 1e9), int(store * 1e9))

    def close(self) -> None:
        """Both clocks are right again."""
        self.shift()
        self._map.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
