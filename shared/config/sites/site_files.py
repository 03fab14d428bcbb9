"""The files of `sites.d`: which sites each holds, read again only where a file has changed.

A look at thousands of files costs as little as one at hundreds: what is added, removed and renamed
shows in the directory, and of the files themselves MOST are looked at, by turns. A file that was
renamed into the place of another is read at once; what is written in place, added or removed only
after it stayed the same between two looks, so that a part of a file is never taken for the whole.
"""

from __future__ import annotations

import os
import time
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from shared.config import environment
from shared.config.sites import site_tables
from shared.config.sites.site_tables import ConfigPlaces, PlacedSite, SiteTables
from shared.errors import ConfigError, Fault

MOST = 500
"""Files of one look (3 ms): of 10,000, one that is edited in place is noticed within 10 s."""

_ENDING = ".toml"
_COARSE_S = 2.0
"""Seconds for which a directory may change without another time of change, on coarse clocks."""


class FileIdentity(NamedTuple):
    """The properties by which a change of a file is noticed."""

    inode: int
    size: int
    mtime_ns: int


def identity(path: str | Path) -> FileIdentity | None:
    """The identity of the file; None if there is none, or its directory cannot be searched."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return FileIdentity(found.st_ino, found.st_size, found.st_mtime_ns)


class SiteFile(NamedTuple):
    """One file as it was read: its sites, or its faults."""

    identity: FileIdentity | None
    digest: bytes
    sites: Mapping[str, PlacedSite]
    faults: tuple[Fault, ...] = ()


class SiteFiles:
    """The files of one directory, by name. Not thread-safe; `copied` shares what was read."""

    def __init__(self, places: ConfigPlaces) -> None:
        """Read nothing yet: see `look`."""
        self.places, self.files = places, dict[str, SiteFile]()
        self._noticed = dict[str, FileIdentity | None]()
        self._directory: FileIdentity | None = None
        self._turn = list[str]()
        self._variables = environment.of_tables(os.environ, "sites")

    def copied(self) -> SiteFiles:
        """Return the same files, to be looked at by another thread."""
        other = SiteFiles(self.places)
        other.files = dict(self.files)
        return other

    def look(self, *, everything: bool = False) -> bool:
        """Look for changes; True if some were read. With `everything`, look at each file, and wait
        for none to rest.
        """
        ready = list[tuple[str, FileIdentity | None]]()
        for name in self._due(everything=everything):
            found, known = identity(self._path(name)), self.files.get(name)
            if found == (known.identity if known else None):
                self._noticed.pop(name, None)
            elif everything or self._rests(name, known, found):
                ready.append((name, found))
            else:
                self._noticed[name] = found
        for name, found in ready:
            self._noticed.pop(name, None)
            if found is None:
                del self.files[name]
            else:
                self.files[name] = self._read(name, found)
        return bool(ready)

    def _due(self, *, everything: bool) -> Iterable[str]:
        found = identity(self.places.directory)
        if everything or found != self._directory:
            coarse = found and time.time() - found.mtime_ns / 1e9 < _COARSE_S
            self._directory, self._turn = (None if coarse else found), []
            return {*self._listed(), *self.files}
        self._turn = self._turn or list(self.files)
        some, self._turn = self._turn[:MOST], self._turn[MOST:]
        return {*some, *self._noticed}

    def _listed(self) -> list[str]:
        try:
            names = os.listdir(self.places.directory)
        except OSError:
            return []
        return [name for name in names if name.endswith(_ENDING) and not name.startswith(".")]

    def _rests(self, name: str, known: SiteFile | None, found: FileIdentity | None) -> bool:
        if known and known.identity and found and known.identity.inode != found.inode:
            return True
        return name in self._noticed and self._noticed[name] == found

    def _path(self, name: str) -> str:
        return f"{self.places.directory}/{name}"

    def _read(self, name: str, found: FileIdentity) -> SiteFile:
        try:
            with open(self._path(name), "rb") as file:
                text = file.read()
        except OSError as error:
            fault = Fault(_named(name), "config", f"cannot be read: {error.strerror}")
            return SiteFile(None, b"", {}, (fault,))  # looked at again: its rights may change
        return self.parsed(name, text, found)

    def parsed(self, name: str, text: bytes, found: FileIdentity | None = None) -> SiteFile:
        """Return what `text`, the content of the file `name`, means."""
        digest = sha256(text).digest()
        try:
            given = tomllib.loads(text.decode("utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            fault = Fault(_named(name), "config", f"is not valid TOML: {error}")
            return SiteFile(found, digest, {}, (fault,))
        faults = [
            Fault(f"{_named(name)}: {each}", "config", "belongs into sitemapd.toml")
            for each in given.keys() - {"sites"}
        ]
        given = {each: value for each, value in given.items() if each == "sites"}
        sites: Mapping[str, PlacedSite] = {}
        try:
            tables = given.get("sites")
            own = environment.of_names(self._variables, tables if isinstance(tables, dict) else ())
            given = environment.overlaid(given, own, SiteTables) if own else given
            sites = site_tables.validated(given, self.places)
        except ConfigError as error:
            faults += [
                each._replace(field=f"{_named(name)}: {each.field}") for each in error.faults
            ]
        return SiteFile(found, digest, {} if faults else sites, tuple(faults))

    def holding(self, site: str) -> str:
        """Return the name of the file that holds `site`; empty if none does."""
        return next((name for name, each in self.files.items() if site in each.sites), "")

    @property
    def stands(self) -> bool:
        """True if there is a directory of site files."""
        return self.places.directory.is_dir()

    @property
    def whole(self) -> bool:
        """True if no file has a fault."""
        return not any(each.faults for each in self.files.values())

    def merged(self, above: Mapping[str, object]) -> dict[str, PlacedSite]:
        """Return the sites of all files, by the names of these; `above` are those of sitemapd.toml.

        Raises ConfigError with the faults of all files, and each site that is in two.
        """
        found, faults = dict[str, PlacedSite](), list[Fault]()
        for name in sorted(self.files):
            each = self.files[name]
            faults += each.faults
            found |= each.sites
        if len(found) + len(above) != len({*found, *above}) or len(found) != sum(
            len(each.sites) for each in self.files.values()
        ):
            faults += self._twice(above)
        if faults:
            raise ConfigError(*faults)
        return found

    def _twice(self, above: Mapping[str, object]) -> Iterator[Fault]:
        holders = dict.fromkeys(above, "sitemapd.toml")
        for name in sorted(self.files):
            for site in self.files[name].sites:
                if (other := holders.setdefault(site, _named(name))) != _named(name):
                    detail = f"is in {other} and in {_named(name)}: remove one of them"
                    yield Fault(f"sites.{site}", "config", detail)

    def digests(self) -> Iterator[bytes]:
        """Yield what names the content of all files: nothing if there are none."""
        for name in sorted(self.files):
            yield name.encode("utf-8", "surrogateescape") + b"\0" + self.files[name].digest


def _named(name: str) -> str:
    return f"sites.d/{name}"
