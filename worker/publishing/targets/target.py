"""Interface of a publishing target: files by plain names, each replaced as a whole.

A pass stages its files, then places shards, indexes and feeds in this order, and removes last. A
reader sees the old bytes of a file or the new ones. A writer whose predecessor was replaced by
another meanwhile is refused (OvertakenError): a lost lease never overwrites newer bytes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

from shared.store.publishing.publish_work import PublishRun

Piece = bytes | memoryview


class StagedFile(NamedTuple):
    """A file that is ready to be placed; `mtime` in whole seconds since 1970.

    `before` identifies its predecessor, None if there was none. `content` is what its target needs
    to place it: an open file beside it, named `temp`, or the bytes.
    """

    temp: str
    name: str
    mtime: int
    before: tuple[int, int] | str | None
    content: Any


class FileState(NamedTuple):
    """A file as its target lists it; times in nanoseconds since 1970.

    `inode` identifies the bytes of a target that has no inodes.
    """

    inode: int
    size: int
    mtime_ns: int
    ctime_ns: int
    directory: bool = False


class Target(ABC):
    """One place with the files of a site. Every method raises PublishError if it refuses."""

    address: str
    """Its directory or address, for messages."""
    _left: PublishRun | None
    """The run marker as last accepted."""

    @abstractmethod
    def stands(self) -> bool:
        """Return True if this is still the place that was opened."""

    @abstractmethod
    def is_of(self, run: PublishRun) -> bool:
        """Return True if the run marker is as last accepted, of `run` or of an earlier publish of
        it. ownership.py judges anything else.
        """

    @abstractmethod
    def accept(self, run: PublishRun) -> None:
        """Take the run marker as that of `run`: `is_of` is then True until it changes."""

    def continues(self, run: PublishRun) -> bool:
        """Return True if the master of `run` is that of the run marker as last accepted."""
        return self._left is not None and self._left.history == run.history

    @abstractmethod
    def mark(self, run: PublishRun) -> bool:
        """Mark the files as those of `run`; they are marked as those of an earlier publish. False
        unless `continues`: nothing is marked, and `is_of` says no.
        """

    @abstractmethod
    def close(self) -> None:
        """Release what `open_target` opened."""

    @abstractmethod
    def stage(
        self, name: str, pieces: Sequence[Piece], *, since: int = 0, dated: int = 0
    ) -> StagedFile:
        """Prepare the file `name` with `pieces`; UnwritableError if no file can have that name.

        Its mtime is a whole second later than its predecessor's at least, not before `since`, and
        `dated` if that is given and possible (s since 1970).
        """

    @abstractmethod
    def place(self, staged: StagedFile) -> None:
        """Replace the file by the staged one.

        Raises UnwritableError if only this name is refused, and OvertakenError if another file has
        it by now.
        """

    @abstractmethod
    def flush(self, staged: StagedFile) -> None:
        """Wait until nothing slow but `place` is left to do."""

    @abstractmethod
    def discard(self, staged: Collection[StagedFile]) -> None:
        """Discard staged files that were not placed; placed ones stay."""

    @abstractmethod
    def mtime(self, name: str) -> int:
        """Return the mtime of `name` in whole seconds since 1970; 0 if it does not exist."""

    @abstractmethod
    def look(self, name: str) -> FileState | None:
        """Return the state of `name`, to detect changes; None if it does not exist."""

    @abstractmethod
    def look_at(self, names: Iterable[str]) -> dict[str, FileState | None]:
        """Return `look` of many names."""

    @abstractmethod
    def sync(self) -> None:
        """Make placed and removed names durable."""

    @abstractmethod
    def remove(self, name: str) -> bool:
        """Remove `name`; return True if it existed."""

    @abstractmethod
    def read(self, name: str) -> bytes | None:
        """Return the bytes of `name`, None if it does not exist."""

    @abstractmethod
    def read_own(self, name: str) -> bytes | None:
        """Return the bytes of a sitemapd file; None also if unreadable: it will be replaced."""

    @abstractmethod
    def names(self) -> list[str]:
        """Return all names in the target."""

    @abstractmethod
    def sweep(self, older_s: float = 0) -> None:
        """Remove what dead publishers left behind, `older_s` seconds old."""
