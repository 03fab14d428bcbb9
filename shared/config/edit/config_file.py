"""The configuration as commands and the operator's API change it: sitemapd.toml or a site file.

The whole configuration is validated before a file is replaced. A crash at any point leaves the
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

from shared.config.settings import Settings, parse, read, revision_of
from shared.config.sites.site_files import SiteFiles
from shared.config.sites.site_tables import ConfigPlaces
from shared.durable_files import sync_directory
from shared.errors import ConfigError, Fault, InvalidError
from shared.sitemap.shards import SECTION

_SECRET = re.compile(r'("|\')(?:(?!\1).)*\1')
_HIDDEN = re.compile(r"^.(?:\s*)(?:secrets?|tokens?|token_sha256|source_key|key)\s*=")


Change = Callable[[str, Settings], str]


class ConfigEdit(NamedTuple):
    """A change that was made: the settings before and after, the changed lines, the revision."""

    before: Settings
    after: Settings
    lines: tuple[str, ...]
    revision: str


class ConfigFile:
    """The files `sitemapd.toml` and `sites.d/*.toml` of an installation."""

    def __init__(self, path: Path, known: SiteFiles | None = None) -> None:
        """`path` may be a symbolic link; the file it names is replaced then, not the link.

        Site files that are `known` are not read again unless they have changed.
        """
        self.path, self._places = path.resolve(), ConfigPlaces.of(path)
        self._known = known or SiteFiles(self._places)

    def edit(self, change: Change, site: str = "", *, new: bool = False) -> ConfigEdit:
        """Replace the text by what `change` makes of it and of the settings it holds: that of the
        file that holds `site`, or gets it if it is `new`; by default sitemapd.toml.

        Raises ConfigError if the present or the changed configuration is invalid, InvalidError if
        the file cannot be written; the files are then as before.
        """
        with self._alone():
            files = self._known.copied()
            files.look(everything=True)
            main = read(self.path)
            before = parse(main, self.path, files)
            path = self._file_of(site, files, new=new)
            own = path != self.path
            text = main if not own else read(path) if path.exists() else b""
            edited = change(text.decode("utf-8"), before).encode("utf-8")
            if own:
                files.files[path.name] = files.parsed(path.name, edited)
            else:
                main = edited
            after = parse(main, self.path, files)
            if (read(path) if path.exists() else b"") != text:
                detail = "was changed by another program meanwhile: try again"
                raise InvalidError(Fault(str(path), "file", detail))
            if own and not edited.strip():
                self._remove(path)
                del files.files[path.name]
            else:
                self._replace(path, edited)
        lines = tuple(_changed_lines(text.decode("utf-8"), edited.decode("utf-8")))
        return ConfigEdit(before, after, lines, revision_of(main, files))

    def _file_of(self, site: str, files: SiteFiles, *, new: bool) -> Path:
        """Return the file that holds `site`; of a `new` one, where it belongs."""
        if name := files.holding(site) if site else "":
            return (self._places.directory / name).resolve()
        if new and files.stands and SECTION.fullmatch(site):
            return self._places.directory / f"{site}.toml"
        return self.path

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Exclude other edits, by a lock on the directory: it leaves no file behind."""
        with self._told(self.path, "locked"):
            directory = os.open(self.path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(directory, fcntl.LOCK_EX)
            yield
        finally:
            os.close(directory)

    def _replace(self, path: Path, text: bytes) -> None:
        """Write `text` to a new file with mode and owner of the old one, and rename it; those of a
        new site file are those of sitemapd.toml, which holds secrets, too.
        """
        temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
        with self._told(path, "written"):
            old = os.stat(path if path.exists() else self.path)
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(descriptor, "wb") as file, self._told(path, "written"):
                new = os.fstat(descriptor)
                if (new.st_uid, new.st_gid) != (old.st_uid, old.st_gid):
                    self._give(path, descriptor, old)
                os.fchmod(descriptor, old.st_mode & 0o7777)
                file.write(text)
                file.flush()
                os.fsync(descriptor)
                os.rename(temporary, path)
                sync_directory(path.parent)
        finally:
            with contextlib.suppress(FileNotFoundError):
                temporary.unlink()

    def _remove(self, path: Path) -> None:
        """Remove a site file that holds nothing any more."""
        with self._told(path, "removed"):
            path.unlink()
            sync_directory(path.parent)

    def _give(self, path: Path, descriptor: int, old: os.stat_result) -> None:
        """Give the new file the owner of the old one. Raises InvalidError if only root may."""
        try:
            os.fchown(descriptor, old.st_uid, old.st_gid)
        except PermissionError:
            detail = (
                f"belongs to user {old.st_uid}, group {old.st_gid}, which this process may not "
                "keep: run the command as that user, or chown the file"
            )
            raise InvalidError(Fault(str(path), "file", detail)) from None

    @contextmanager
    def _told(self, path: Path, done: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            detail = f"cannot be {done}: {error.strerror or error}"
            raise ConfigError(Fault(str(path), "file", detail)) from error


def _changed_lines(before: str, after: str) -> Iterator[str]:
    """Yield the added and removed lines with + and -, secrets left out (RELIABILITY T30)."""
    for line in difflib.unified_diff(before.splitlines(), after.splitlines(), n=0, lineterm=""):
        if line.startswith(("---", "+++", "@@")) or not line[1:].strip():
            continue
        yield _SECRET.sub('"..."', line) if _HIDDEN.match(line) else line
