"""Changes of the configuration: add and remove sites, add sections and users."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

from shared.config.console import Role
from shared.config.edit.config_file import ConfigEdit, ConfigFile
from shared.config.edit.toml_text import add_table, remove_table
from shared.config.settings import Settings
from shared.config.standard_secret import new_secret
from shared.errors import Fault, InvalidError
from shared.visible_text import few

Split = Literal["", "month", "language"]
NEW_ROOT = "public-"
"""Begin of the directory name of a new site's web root, beside that of the first site."""


class NewSite(NamedTuple):
    """A site that was added, with the credentials that were made for it."""

    edit: ConfigEdit
    secret: str
    token: str


class NewUser(NamedTuple):
    """A user that was added, with the token that was made."""

    edit: ConfigEdit
    token: str


def add_site(
    file: ConfigFile, name: str, url: str, *, web_root: str = "",
    sections: Mapping[str, Mapping[str, Any]] | None = None,
) -> NewSite:  # fmt: skip
    """Add a site with new credentials. Raises InvalidError, ConfigError; nothing is changed then.

    Without `web_root` its files are written beside those of the first site.
    """
    secret, token = new_secret(), secrets.token_urlsafe(32)

    def change(text: str, settings: Settings) -> str:
        _absent(settings.sites, name, "sites")
        table = {
            "base_url": url, "web_root": web_root or _root_beside(file.path.parent, settings, name),
            "secrets": [secret], "tokens": [token],
        }  # fmt: skip
        text = add_table(text, ("sites", name), table)
        for section, values in (sections or {}).items():
            text = add_table(text, ("sites", name, "sections", section), values)
        return text

    return NewSite(file.edit(change, name, new=True), secret, token)


def remove_site(file: ConfigFile, name: str) -> ConfigEdit:
    """Remove a site; its files and its state stay. Raises InvalidError, ConfigError."""

    def change(text: str, settings: Settings) -> str:
        _present(settings, name)
        if len(settings.sites) == 1:
            detail = "is the only site, and sitemapd needs one to start: add the next one first"
            raise InvalidError(Fault(f"sites.{name}", "config", detail))
        return remove_table(text, ("sites", name))

    return file.edit(change, name)


def add_section(file: ConfigFile, site: str, name: str, values: Mapping[str, Any]) -> ConfigEdit:
    """Add a section to a site. Raises InvalidError, ConfigError; nothing is changed then."""

    def change(text: str, settings: Settings) -> str:
        _present(settings, site)
        _absent(settings.sites[site].sections, name, f"sites.{site}.sections")
        return add_table(text, ("sites", site, "sections", name), values)

    return file.edit(change, site)


def add_user(file: ConfigFile, name: str, role: Role) -> NewUser:
    """Add a user of the console with a new token. Raises InvalidError, ConfigError."""
    token = secrets.token_urlsafe(32)

    def change(text: str, settings: Settings) -> str:
        _absent(settings.console.users, name, "console.users")
        return add_table(text, ("console", "users", name), {"token": token, "role": role})

    return NewUser(file.edit(change), token)


def section_values(
    *, split: Split = "", news: bool = False, paths: tuple[str, ...] = (),
    languages: tuple[str, ...] = (),
) -> dict[str, Any]:  # fmt: skip
    """Return the fields of a section that differ from their defaults."""
    given = {"news": news, "split": split, "paths": list(paths), "languages": list(languages)}
    return {name: value for name, value in given.items() if value}


def _present(settings: Settings, site: str) -> None:
    if site not in settings.sites:
        known = few(settings.sites) or "none"
        raise InvalidError(Fault(site, "config", f"is not configured; there are: {known}"))


def _absent(known: Mapping[str, object], name: str, where: str) -> None:
    if name in known:
        raise InvalidError(Fault(f"{where}.{name}", "config", "is there already"))


def _root_beside(home: Path, settings: Settings, name: str) -> str:
    """Return the web root of a new site: relative where the others are below `home`."""
    first = next((site.web_root for site in settings.sites.values()), home / NEW_ROOT)
    root = first.parent / f"{NEW_ROOT}{name}"
    return str(root.relative_to(home)) if root.is_relative_to(home) else str(root)
