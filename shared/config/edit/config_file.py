"""The configuration file as commands and the operator's API change it.

The whole configuration is validated before the file is replaced. A crash at any point leaves the
old file or the new one.
"""

from __future__ import annotations

import contextlib
import difflib
import fcntl
import os
import re
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from shared.config.live import revision_of
from shared.config.settings import Settings, parse, read
from shared.durable_files import sync_directory
from shared.errors import ConfigError, Fault, InvalidError

_SECRET = re.compile(r'("|\')(?:(?!\1).)*\1')
_HIDDEN = re.compile(r"^.(?:\s*)(?:secrets?|tokens?|token_sha256|source_key|key)\s*=")


class ConfigEdit(NamedTuple):
    """A change that was made: the settings before and after, the changed lines, the revision."""

    before: Settings
    after: Settings
    lines: tuple[str, ...]
    revision: str


class ConfigFile:
    """The file `sitemapd.toml` of an installation."""

    def __init__(self, path: Path) -> None:
        """`path` may be a symbolic link; the file it names is replaced then, not the link."""
        self.path = path.resolve()

    def edit(self, change: Callable[[str, Settings], str]) -> ConfigEdit:
        """Replace the text by what `change` makes of it and of the settings it holds.

        Raises ConfigError if the present or the changed configuration is invalid, InvalidError if
        the file cannot be written; the file is then as before.
        """
        with self._alone():
            text = read(self.path)
            before = parse(text, self.path)
            edited = change(text.decode("utf-8"), before).encode("utf-8")
            after = parse(edited, self.path)
            if read(self.path) != text:
                detail = "was changed by another program meanwhile: try again"
                raise InvalidError(Fault(str(self.path), "file", detail))
            self._replace(edited)
        lines = tuple(_changed_lines(text.decode("utf-8"), edited.decode("utf-8")))
        return ConfigEdit(before, after, lines, revision_of(edited))

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Exclude other edits, by a lock on the directory: it leaves no file behind."""
        with self._told("locked"):
            directory = os.open(self.path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(directory, fcntl.LOCK_EX)
            yield
        finally:
            os.close(directory)

    def _replace(self, text: bytes) -> None:
        """Write `text` to a new file with mode and owner of the old one, and rename it."""
        temporary = self.path.with_name(f".{self.path.name}.{secrets.token_hex(8)}")
        with self._told("written"):
            old = os.stat(self.path)
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(descriptor, "wb") as file, self._told("written"):
                new = os.fstat(descriptor)
                if (new.st_uid, new.st_gid) != (old.st_uid, old.st_gid):
                    self._give(descriptor, old)
                os.fchmod(descriptor, old.st_mode & 0o7777)
                file.write(text)
                file.flush()
                os.fsync(descriptor)
                os.rename(temporary, self.path)
                sync_directory(self.path.parent)
        finally:
            with contextlib.suppress(FileNotFoundError):
                temporary.unlink()

    def _give(self, descriptor: int, old: os.stat_result) -> None:
        """Give the new file the owner of the old one. Raises InvalidError if only root may."""
        try:
            os.fchown(descriptor, old.st_uid, old.st_gid)
        except PermissionError:
            detail = (
                f"belongs to user {old.st_uid}, group {old.st_gid}, which this process may not "
                "keep: run the command as that user, or chown the file"
            )
            raise InvalidError(Fault(str(self.path), "file", detail)) from None

    @contextmanager
    def _told(self, done: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            detail = f"cannot be {done}: {error.strerror or error}"
            raise ConfigError(Fault(str(self.path), "file", detail)) from error


def _changed_lines(before: str, after: str) -> Iterator[str]:
    """Yield the added and removed lines with + and -, secrets left out (RELIABILITY T30)."""
    for line in difflib.unified_diff(before.splitlines(), after.splitlines(), n=0, lineterm=""):
        if line.startswith(("---", "+++", "@@")) or not line[1:].strip():
            continue
        yield _SECRET.sub('"..."', line) if _HIDDEN.match(line) else line
