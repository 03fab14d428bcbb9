"""The configuration: one TOML file and `SITEMAPD_*` variables, read once, all faults at once."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, SecretStr, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict, SettingsError

from shared.config import cms_connections, locations
from shared.config.console import Console
from shared.config.site import Site
from shared.errors import ConfigError, Fault
from shared.sitemap import shards

FILE = "sitemapd.toml"
PREFIX = "SITEMAPD_"
NESTED = "__"
"""SITEMAPD_CONSOLE__SESSION_HOURS is session_hours in the table console."""


def _site_name(name: str) -> str:
    if not shards.SECTION.fullmatch(name):
        raise ValueError("a site name must match [a-z0-9-]{1,32}")
    return name


def _metrics_token(value: SecretStr) -> SecretStr:
    text = value.get_secret_value()
    if text and (len(text) < 16 or not text.isascii() or not text.isprintable() or " " in text):
        raise ValueError("must have at least 16 printable ASCII characters and no spaces")
    return value


def _public_url(text: str) -> str:
    return cms_connections.base_url(text).rstrip("/") if text else ""


_MEMBER = re.compile(r"([a-z_]+(?:\.[^\s:.]+)*): ")
"""The member named at the start of a line."""


class Settings(BaseSettings):
    """All settings of an administrator."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, env_nested_delimiter=NESTED, extra="forbid", frozen=True
    )

    redis_url: Annotated[str, AfterValidator(locations.redis_url)] = Field(
        "", description="Redis >= 7.0 or Valkey; empty: the embedded server"
    )
    public_url: Annotated[str, AfterValidator(_public_url)] = Field(
        "",
        description="public address of the webhook, for `connect`; empty: the origin of base_url",
    )
    allow_loss: bool = Field(False, description="accept a Redis configuration that may lose events")
    body_limit: int = Field(
        1_048_576, ge=1024, description="maximum size of a request body in bytes"
    )
    inbox_limit: int = Field(
        1_000_000, ge=0, description="maximum number of waiting events, above it 503; 0: no limit"
    )
    linger: float = Field(
        0.02, ge=0.001, le=1, description="seconds between reads of the inbox under load"
    )
    console: Console = Field(
        {}, validate_default=True, description="the console at /admin/; off without users"
    )
    metrics_token: Annotated[SecretStr, AfterValidator(_metrics_token)] = Field(
        "", validate_default=True, description="Bearer token for /metrics of all sites; empty: none"
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        "info", description="debug: also log each decision with its reason"
    )
    history_mb: float = Field(
        16, ge=0.1, le=4096, allow_inf_nan=False,
        description="megabytes of Redis for the event log of a site, and again for its revisions",
    )  # fmt: skip
    checks_hours: float = Field(
        24, ge=0, le=8_784, allow_inf_nan=False,
        description="hours between two checks of each site; 0: only on request",
    )  # fmt: skip
    sites: dict[Annotated[str, AfterValidator(_site_name)], Site] = Field({})


def load(path: Path) -> Settings:
    """Settings of `path` and the environment (which wins). Raises ConfigError with every fault."""
    try:
        given = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(Fault(str(path), "config", f"cannot be read: {error.strerror}")) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(Fault(str(path), "config", f"is not valid TOML: {error}")) from None
    for name in os.environ:
        if name.startswith(PREFIX):
            _leave_out(given, name.removeprefix(PREFIX).lower().split(NESTED))
    home = path.resolve().parent
    try:
        settings = Settings(**given)
    except ValidationError as error:
        faults = [fault for each in error.errors(include_input=False) for fault in _faults(each)]
        raise ConfigError(*faults, *_root_faults(_given_roots(given, faults), home)) from None
    except SettingsError as error:
        raise ConfigError(Fault("environment", "config", str(error))) from None
    roots = {name: site.web_root for name, site in settings.sites.items()}
    if faults := _root_faults(roots, home):
        raise ConfigError(*faults)
    sites = {
        name: site.model_copy(update={"web_root": home / site.web_root})
        for name, site in settings.sites.items()
    }
    return settings.model_copy(update={"sites": sites})


def _leave_out(table: Any, path: list[str]) -> None:
    """Remove the value at `path` of the file's tables: the environment overrides it."""
    *above, last = path
    for name in above:
        table = table.get(name) if isinstance(table, dict) else None
    if isinstance(table, dict):
        table.pop(last, None)


def _faults(error: Any) -> Iterator[Fault]:
    """The faults of one error of pydantic: one for each line of its message."""
    where = ".".join(str(part) for part in error["loc"] if part != "[key]")
    for line in error["msg"].removeprefix("Value error, ").split("\n"):
        member = _MEMBER.match(line) if error["loc"][:-1] == ("sites",) else None
        field = ".".join(filter(None, (where, member[1] if member else "")))
        yield Fault(field or "sites", "config", line[member.end() :] if member else line)


def _given_roots(given: Any, faults: Sequence[Fault]) -> dict[str, Path]:
    """The valid web roots in tables of sites that may have other faults."""
    wrong, sites = {fault.field for fault in faults}, given.get("sites")
    return {
        name: Path(root)
        for name, site in (sites.items() if isinstance(sites, dict) else ())
        if isinstance(site, dict) and isinstance(root := site.get("web_root"), str)
        if f"sites.{name}.web_root" not in wrong
    }


def _root_faults(roots: Mapping[str, Path], home: Path) -> list[Fault]:
    """Faults of the web roots on the disk, and of sites that share one."""
    names: dict[Path, str] = {}
    faults = []
    for name, root in roots.items():
        other = names.setdefault((home / root).resolve(), name)
        detail = locations.on_disk(home / root, home)
        if other != name:
            detail = f"is also the web_root of the site {other}: each site needs its own"
        if detail:
            faults.append(Fault(f"sites.{name}.web_root", "config", detail))
    return faults
