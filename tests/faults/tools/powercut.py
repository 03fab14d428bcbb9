"""A file system on which a power cut can be played (RELIABILITY F6): see platter for its rules."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from pathlib import Path
from typing import Self

from tests.faults.tools import needs
from tests.faults.tools.disk import unmount
from tests.faults.tools.needs import ToolError

_ROOT = Path(__file__).resolve().parents[3]


class PowerCut:
    """`platter` mounted at `mountpoint`; what is written is seen at once and durable by fsync.

    A context manager, whose end is an orderly shutdown. `platter` holds what is durable after
    `cut()` and after the end; in between it is not touched. Sockets and locks work, fallocate does
    not, and mmap is good for reading.
    """

    def __init__(self, mountpoint: Path, platter: Path, *, journalled: bool) -> None:
        needs.root("mount a file system")
        if todo := needs.missing(needs.FUSE):
            raise ToolError("; ".join(todo))
        self.path, self.platter = mountpoint, platter
        self._kind = "journalled" if journalled else "plain"
        self._process: subprocess.Popen[str] | None = None
        self._whole = True

    def __enter__(self) -> Self:
        self._mount()
        return self

    def __exit__(self, *_: object) -> None:
        if self._whole:
            with contextlib.suppress(ToolError):
                self._say("save")
        self._unmount()

    def cut(self, tail: float = 1.0) -> None:
        """The power is gone: every operation gives EIO, `platter` holds what was durable.

        Who uses the files should be killed now, as by the real thing. `tail`: which share of the
        names changed since the last fsync had got into the journal.
        """
        self._say(f"cut {tail}")
        self._whole = False

    def heal(self) -> None:
        """The machine is up again: the same directory, with what the platter has."""
        self._unmount()
        self._mount()

    def _mount(self) -> None:
        self.path.mkdir(parents=True, exist_ok=True)
        self.platter.mkdir(parents=True, exist_ok=True)
        self._process = subprocess.Popen(
            [
                sys.executable, "-m", "tests.faults.tools.powercut_fs",
                str(self.path.resolve()), str(self.platter.resolve()), self._kind,
            ],
            cwd=_ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        self._await("ready")
        self._whole = True

    def _unmount(self) -> None:
        unmount(self.path)
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin is not None
        assert process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()

    def _say(self, line: str) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        try:
            print(line, file=self._process.stdin, flush=True)
        except BrokenPipeError as error:
            raise ToolError("the file system has ended") from error
        self._await(line.partition(" ")[0])

    def _await(self, word: str) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        said = self._process.stdout.readline().strip()
        if said != word:
            raise ToolError(f"the file system said {said!r}, not {word!r}: see its error output")
