"""The tables `[sites.NAME]` of one file: validated together, with absolute directories."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from pydantic import AfterValidator, Field, ValidationError

from shared.config import locations
from shared.config.credentials import ConfigModel
from shared.config.sites.site import Site
from shared.config.sites.targets import NO_DIRECTORY, host_name
from shared.errors import ConfigError, Fault
from shared.sitemap import shards

_MEMBER = re.compile(r"([a-z_]+(?:\.[^\s:.]+)*): ")
"""The member named at the start of a line."""


def _site_name(name: str) -> str:
    if not shards.SECTION.fullmatch(name):
        raise ValueError("a site name must match [a-z0-9-]{1,32}")
    return name


SiteName = Annotated[str, AfterValidator(_site_name)]


class SiteTables(ConfigModel):
    """All that a file of `sites.d` may hold."""

    sites: dict[SiteName, Site] = Field({})


class PlacedSite(NamedTuple):
    """A site with absolute directories; `root` is its web root without links, None if it has
    none.
    """

    site: Site
    root: Path | None


class ConfigPlaces(NamedTuple):
    """Places of the configuration: `home`, to which directories of sites are relative, and the
    `directory` of site files. None of these and of what they link to may be served: `guarded`.
    """

    home: Path
    directory: Path
    guarded: tuple[Path, ...]

    @classmethod
    def of(cls, path: Path) -> ConfigPlaces:
        """Return the places of the configuration file `path`."""
        home, directory = path.resolve().parent, path.parent / locations.DIRECTORY
        return cls(home, directory, (home, directory.resolve()))


def validated(given: Mapping[str, Any], places: ConfigPlaces) -> dict[str, PlacedSite]:
    """Return the sites of a file of `sites.d` by name. Raises ConfigError with every fault."""
    try:
        tables = SiteTables.model_validate(given)
    except ValidationError as error:
        found = faults_of(error)
        raise ConfigError(*found, *given_root_faults(given, found, places)) from None
    return placed(tables.sites, places)


def placed(sites: Mapping[str, Site], places: ConfigPlaces) -> dict[str, PlacedSite]:
    """Return `sites` with absolute directories. Raises ConfigError if some cannot be used."""
    found = {name: _placed(site, places.home) for name, site in sites.items()}
    roots = {name: each.web_root for name, each in found.items() if each.web_root != NO_DIRECTORY}
    resolved = {name: root.resolve() for name, root in roots.items()}
    if faults := root_faults(resolved, places):
        raise ConfigError(*faults)
    return {name: PlacedSite(site, resolved.get(name)) for name, site in found.items()}


def _placed(site: Site, home: Path) -> Site:
    """`site` with absolute directories; without `web_root`, that is its first on this host."""
    every = tuple(
        each if each.scheme else each.model_copy(update={"url": str(home / each.url)})
        for each in site.targets
    )
    root, host = site.web_root, host_name()
    if root == NO_DIRECTORY:
        here = (each.url for each in every if not each.scheme and each.is_here(host))
        root = Path(next(here, root))
    return site.model_copy(update={"web_root": home / root, "targets": every})


def faults_of(error: ValidationError) -> list[Fault]:
    """The faults that pydantic found."""
    return [fault for each in error.errors(include_input=False) for fault in _faults(each)]


def _faults(error: Any) -> Iterator[Fault]:
    """The faults of one error of pydantic: one for each line of its message."""
    where = ".".join(str(part) for part in error["loc"] if part != "[key]")
    for line in error["msg"].removeprefix("Value error, ").split("\n"):
        member = _MEMBER.match(line) if error["loc"][:-1] == ("sites",) else None
        field = ".".join(filter(None, (where, member[1] if member else "")))
        yield Fault(field or "sites", "config", line[member.end() :] if member else line)


def given_root_faults(given: Any, faults: Sequence[Fault], places: ConfigPlaces) -> list[Fault]:
    """Faults of the valid web roots in tables of sites that have the `faults` already."""
    wrong, sites = {fault.field for fault in faults}, given.get("sites")
    roots = {
        name: (places.home / root).resolve()
        for name, site in (sites.items() if isinstance(sites, dict) else ())
        if isinstance(site, dict) and isinstance(root := site.get("web_root"), str)
        if f"sites.{name}.web_root" not in wrong
    }
    return root_faults(roots, places)


def root_faults(resolved: Mapping[str, Path], places: ConfigPlaces) -> list[Fault]:
    """Faults of web roots on the disk, and of sites that share one."""
    shared = shared_root_faults(resolved)
    wrong = {fault.field for fault in shared}
    alone = (
        Fault(field, "config", detail)
        for name, root in resolved.items()
        if (field := f"sites.{name}.web_root") not in wrong
        and (detail := locations.on_disk(root, *places.guarded))
    )
    return [*shared, *alone]


def shared_root_faults(resolved: Mapping[str, Path | None]) -> list[Fault]:
    """Faults of sites that share a web root."""
    names: dict[Path, str] = {}
    faults = []
    for name, root in resolved.items():
        if root is not None and (other := names.setdefault(root, name)) != name:
            detail = f"is also the web_root of the site {other}: each site needs its own"
            faults.append(Fault(f"sites.{name}.web_root", "config", detail))
    return faults
