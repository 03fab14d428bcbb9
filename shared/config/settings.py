"""The configuration: a TOML file, the site files in `sites.d` beside it and `SITEMAPD_*` variables,
read whole, all faults at once.
"""

from __future__ import annotations

import os
import tomllib
from collections import ChainMap
from collections.abc import Mapping
from hashlib import sha256
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

from shared.config import broker, environment, locations, redis_address
from shared.config.alerts import Alerts
from shared.config.console import Console
from shared.config.credentials import ConfigModel
from shared.config.operator_api import OperatorApi
from shared.config.sites import cms_connections
from shared.config.sites.site import Site
from shared.config.sites.site_files import SiteFiles
from shared.config.sites.site_tables import (
    ConfigPlaces,
    PlacedSite,
    SiteName,
    faults_of,
    given_root_faults,
    placed,
    shared_root_faults,
)
from shared.errors import ConfigError, Fault

FILE = locations.FILE
_IN_FILES = "sites in files"


def _metrics_token(value: SecretStr) -> SecretStr:
    text = value.get_secret_value()
    if text and (len(text) < 16 or not text.isascii() or not text.isprintable() or " " in text):
        raise ValueError("must have at least 16 printable ASCII characters and no spaces")
    return value


def _public_url(text: str) -> str:
    return cms_connections.base_url(text).rstrip("/") if text else ""


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
    sites: dict[SiteName, Site] = Field({})
    alerts: Alerts = Field(
        {}, validate_default=True, description="e-mail, webhook, Slack; off without a channel"
    )

    def partners(self, name: str) -> dict[str, Site]:
        """The other sites with which the site `name` shares its translation groups."""
        pool = self.sites[name].translations
        return {
            other: site
            for other, site in (self.sites.items() if pool else ())
            if other != name and site.translations == pool
        }

    def inner(self, name: str) -> list[str]:
        """The beginnings of the pages of other sites that are below the directory of `name`."""
        prefix = self.sites[name].base.prefix
        others = (site.base.prefix for other, site in self.sites.items() if other != name)
        return [other for other in others if other != prefix and other.startswith(prefix)]

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
        further: Mapping[str, object] | None = (info.context or {}).get(_IN_FILES, {})
        if "sites" in info.data and further is not None:
            known = ChainMap({**info.data["sites"]}, {**further})
            if faults := [*alerts.unknown_sites(known)]:
                raise ValueError("\n".join(faults))
        return alerts


def load(path: Path) -> Settings:
    """Settings of `path`, the files of `sites.d` beside it, and the environment, which wins.
    Raises ConfigError with every fault.
    """
    return parse(read(path), path, read_sites(path))


def read(path: Path) -> bytes:
    """The text of the configuration file `path`. Raises ConfigError."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(Fault(str(path), "config", f"cannot be read: {error.strerror}")) from None


def read_sites(path: Path) -> SiteFiles:
    """The site files beside the configuration file `path`, as they are now."""
    files = SiteFiles(ConfigPlaces.of(path))
    files.look(everything=True)
    return files


def parse(text: bytes, path: Path, files: SiteFiles | None = None) -> Settings:
    """Settings of `text`, the content of the file `path`, of the site `files` beside it, and the
    environment, which wins. Raises ConfigError with every fault.
    """
    try:
        given = tomllib.loads(text.decode("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(Fault(str(path), "config", f"is not valid TOML: {error}")) from None
    files = files or SiteFiles(ConfigPlaces.of(path))
    above, faults = given.get("sites"), list[Fault]()
    further: dict[str, PlacedSite] | None = None
    try:
        further = files.merged(above if isinstance(above, dict) else {})
    except ConfigError as error:
        faults += error.faults
    settings, own = _validated(given, files.places, further, faults)
    if settings is None or further is None:
        raise ConfigError(*faults)
    every = own | further
    if further and (shared := shared_root_faults({name: at.root for name, at in every.items()})):
        raise ConfigError(*shared)
    return settings.model_copy(update={"sites": {name: at.site for name, at in every.items()}})


def _validated(
    given: dict[str, Any], places: ConfigPlaces, further: dict[str, PlacedSite] | None,
    faults: list[Fault],
) -> tuple[Settings | None, dict[str, PlacedSite]]:  # fmt: skip
    """The settings without the `further` sites, and their own sites; adds to `faults`."""
    try:
        of_sites = environment.of_tables(os.environ, "sites")
        # Where a file has a fault, its sites are not known: variables may be for these.
        kept = of_sites if further == {} else environment.of_names(of_sites, given.get("sites", ()))
        variables = {
            name: os.environ[name] for name in os.environ if name in kept or name not in of_sites
        }
        given = environment.overlaid(given, variables, Settings)
        settings = Settings.model_validate(given, context={_IN_FILES: further})
        return settings, placed(settings.sites, places)
    except ValidationError as error:
        found = faults_of(error)
        faults += [*found, *given_root_faults(given, found, places)]
    except ConfigError as error:
        faults += error.faults
    return None, {}


def revision_of(text: bytes, files: SiteFiles | None = None) -> str:
    """The short name of a configuration with this text and these site files."""
    digest = sha256(text)
    for each in files.digests() if files else ():
        digest.update(each)
    return digest.hexdigest()[:12]
