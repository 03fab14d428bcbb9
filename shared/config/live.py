"""The configuration in force in one process, read again when its file or site files change.

All or nothing: a file with a fault changes nothing, and the faults are kept for reports. Of site
files, only those that have changed are read and validated again.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from shared.config.settings import Settings, parse, read, read_sites, revision_of
from shared.config.sites.site_files import identity
from shared.errors import ConfigError, Fault

AT_START = ("redis_url", "broker_url", "allow_loss", "log_level")
"""Fields that take effect at the next start only."""


class Refusal(NamedTuple):
    """The faults of a file that is not in force, and since when (s since 1970)."""

    faults: tuple[Fault, ...]
    since: float


class LiveSettings:
    """The settings that are in force, and those that the file holds."""

    def __init__(self, path: Path) -> None:
        """Read `path`, the configuration to start with. Raises ConfigError."""
        self.path = path
        self._seen = self._noticed = identity(path)
        self._text = read(path)
        self.files = read_sites(path)
        self._begun = self.current = parse(self._text, path, self.files)
        self.revision = revision_of(self._text, self.files)
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
        further = self.files.look(everything=asked)
        if not (asked or self._rests()):
            return self._read(None, apply) if further else False
        return self._read(self.path, apply)

    def _rests(self) -> bool:
        """True if the file has changed, and is not being written."""
        found = identity(self.path)
        if found == self._seen:
            return False
        replaced = found and self._seen and found.inode != self._seen.inode
        if not replaced and found != self._noticed:
            self._noticed = found
            return False
        return True

    def refuse(self, *faults: Fault) -> bool:
        """Record why the file is not in force; True if that is news."""
        if self.refused and self.refused.faults == faults:
            return False
        self.refused = Refusal(faults, time.time())
        return True

    def _read(self, path: Path | None, apply: Callable[[Settings], None]) -> bool:
        """Put what the files hold in force; `path` is None if only site files have changed."""
        try:
            if path is not None:
                self._seen = self._noticed = identity(path)
                self._text = read(path)
            wanted = parse(self._text, self.path, self.files)
        except ConfigError as error:
            return self.refuse(*error.faults)
        if not wanted.sites:
            return self.refuse(Fault("sites", "config", "no site is configured"))
        revision = revision_of(self._text, self.files)
        if revision == self.revision and self.refused is None:
            return False
        begun = {name: getattr(self._begun, name) for name in AT_START}
        kept = wanted.model_copy(update=begun)
        if kept != self.current:
            apply(kept)
        self.next_start = tuple(name for name in AT_START if getattr(wanted, name) != begun[name])
        self.current, self.revision, self.refused = kept, revision, None
        return True
