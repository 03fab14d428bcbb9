"""The configuration in force in one process, read again when its file changes.

All or nothing: a file with a fault changes nothing, and the faults are kept for reports.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from shared.config.settings import Settings, parse, read
from shared.errors import ConfigError, Fault

AT_START = ("redis_url", "broker_url", "allow_loss", "log_level")
"""Fields that take effect at the next start only."""


class _FileIdentity(NamedTuple):
    """The properties by which a change of a file is noticed."""

    inode: int
    size: int
    mtime_ns: int


class Refusal(NamedTuple):
    """The faults of a file that is not in force, and since when (s since 1970)."""

    faults: tuple[Fault, ...]
    since: float


class LiveSettings:
    """The settings that are in force, and those that the file holds."""

    def __init__(self, path: Path) -> None:
        """Read `path`, the configuration to start with. Raises ConfigError."""
        self.path = path
        self._seen = self._noticed = _identity(path)
        text = read(path)
        self._begun = self.current = parse(text, path)
        self.revision = revision_of(text)
        self.refused: Refusal | None = None
        self.next_start: tuple[str, ...] = ()
        """Changed fields that take effect at the next start."""
        self._asked = False

    def ask(self) -> None:
        """Let the next `look` read the file, changed or not; for signal handlers: takes no lock."""
        self._asked = True

    def look(self, apply: Callable[[Settings], None]) -> bool:
        """Read the file if it has changed, and put valid settings in force by `apply`.

        Return True if there are new settings, or another outcome to report. If `apply` raises a
        SitemapdError, the old settings stay in force.

        A file that was replaced is read at once; one that is written in place only after it stayed
        the same between two looks, so that a part of it is never taken for the whole.
        """
        asked, self._asked = self._asked, False
        found = _identity(self.path)
        if not asked:
            if found == self._seen:
                return False
            replaced = found and self._seen and found.inode != self._seen.inode
            if not replaced and found != self._noticed:
                self._noticed = found
                return False
        self._seen = self._noticed = found
        return self._read(apply)

    def refuse(self, *faults: Fault) -> bool:
        """Record why the file is not in force; True if that is news."""
        if self.refused and self.refused.faults == faults:
            return False
        self.refused = Refusal(faults, time.time())
        return True

    def _read(self, apply: Callable[[Settings], None]) -> bool:
        try:
            text = read(self.path)
            wanted = parse(text, self.path)
        except ConfigError as error:
            return self.refuse(*error.faults)
        if not wanted.sites:
            return self.refuse(Fault("sites", "config", "no site is configured"))
        revision = revision_of(text)
        if revision == self.revision and self.refused is None:
            return False
        begun = {name: getattr(self._begun, name) for name in AT_START}
        kept = wanted.model_copy(update=begun)
        if kept != self.current:
            apply(kept)
        self.next_start = tuple(name for name in AT_START if getattr(wanted, name) != begun[name])
        self.current, self.revision, self.refused = kept, revision, None
        return True


def revision_of(text: bytes) -> str:
    """The short name of a configuration with this text."""
    return sha256(text).hexdigest()[:12]


def _identity(path: Path) -> _FileIdentity | None:
    """The identity of the file; None if there is none, or its directory cannot be searched."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return _FileIdentity(found.st_ino, found.st_size, found.st_mtime_ns)
