"""The configuration: one TOML file and `SITEMAPD_*` variables, read whole, all faults at once."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    Field,
    SecretStr,
    ValidationError,
    ValidationInfo,
    field_validator,
)

from shared.config import broker, cms_connections, environment, locations, redis_address
from shared.config.alerts import Alerts
from shared.config.console import Console
from shared.config.credentials import ConfigModel
from shared.config.operator_api import OperatorApi
from shared.config.site import Site
from shared.config.targets import NO_DIRECTORY, host_name
from shared.errors import ConfigError, Fault
from shared.sitemap import shards

FILE = locations.FILE


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


class Settings(ConfigModel):
    """All settings of an administrator."""

    redis_url: Annotated[str, AfterValidator(redis_address.check)] = Field(
        "", description="Redis >= 7.0 or Valkey; empty: the embedded server"
    )
    broker_url: Annotated[str, AfterValidator(broker.check)] = Field(
        "",
        validate_default=True,
        description="broker of Celery: Redis or amqp:// of RabbitMQ; empty: that of redis_url",
    )
    wait_replicas: int = Field(
        0, ge=0, le=16,
        description="replicas of Redis that must have an event before it is acknowledged, else 503",
    )  # fmt: skip
    wait_replicas_ms: int = Field(
        500, ge=10, le=900, description="milliseconds that a request waits for wait_replicas"
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
    api: OperatorApi = Field(
        {}, validate_default=True, description="the operator's API for sites; off without tokens"
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
    alerts: Alerts = Field(
        {}, validate_default=True, description="e-mail, webhook, Slack; off without a channel"
    )

    @field_validator("broker_url")
    @classmethod
    def _no_cluster(cls, broker_url: str, info: ValidationInfo) -> str:
        if fault := broker.needed(info.data.get("redis_url", ""), broker_url):
            raise ValueError(fault)
        return broker_url

    @field_validator("alerts")
    @classmethod
    def _of_known_sites(cls, alerts: Alerts, info: ValidationInfo) -> Alerts:
        # Without `sites` they are invalid, which is reported already.
        if "sites" in info.data and (faults := [*alerts.unknown_sites(info.data["sites"])]):
            raise ValueError("\n".join(faults))
        return alerts


def load(path: Path) -> Settings:
    """Settings of `path` and the environment (which wins). Raises ConfigError with every fault."""
    return parse(read(path), path)


def read(path: Path) -> bytes:
    """The text of the configuration file `path`. Raises ConfigError."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(Fault(str(path), "config", f"cannot be read: {error.strerror}")) from None


def parse(text: bytes, path: Path) -> Settings:
    """Settings of `text`, the content of the file `path`, and the environment, which wins. Raises
    ConfigError with every fault.
    """
    try:
        given = tomllib.loads(text.decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(Fault(str(path), "config", f"is not valid TOML: {error}")) from None
    given = environment.overlaid(given, os.environ, Settings)
    home = path.resolve().parent
    try:
        settings = Settings(**given)
    except ValidationError as error:
        faults = [fault for each in error.errors(include_input=False) for fault in _faults(each)]
        raise ConfigError(*faults, *_root_faults(_given_roots(given, faults), home)) from None
    sites = {name: _placed(site, home) for name, site in settings.sites.items()}
    roots = {name: site.web_root for name, site in sites.items() if site.web_root != NO_DIRECTORY}
    if faults := _root_faults(roots, home):
        raise ConfigError(*faults)
    return settings.model_copy(update={"sites": sites})


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
