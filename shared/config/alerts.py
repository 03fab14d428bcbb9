"""The table `[alerts]`: where alerts are sent, and from when on a condition is one.

Passwords, secrets and addresses that hold one may be `env:NAME` or `file:/path`; they are read on
use, by the process that sends (shared/config/notify/engines.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, SecretStr, model_validator

from shared.alerts import conditions
from shared.alerts.lifecycle import AlertRule
from shared.config import locations
from shared.config.console import is_loopback
from shared.config.credentials import ConfigModel
from shared.config.standard_secret import standard_key

_ELSEWHERE = ("env:", "file:")
_MAILBOX = re.compile(r"[^\s<>@,;:\"()\[\]\\]+@[^\s<>@,;:\"()\\]+", re.ASCII)
_MINUTE_MS = 60_000
_PORTS = {"starttls": 587, "tls": 465, "plain": 25}


def _mailbox(text: str) -> str:
    if not _MAILBOX.fullmatch(text) or not text.isprintable():
        raise ValueError("must be an address as ops@example.com, without a name")
    return text


def _address(value: SecretStr) -> SecretStr:
    text = value.get_secret_value()
    if not text.startswith(_ELSEWHERE) and not locations.http_address(text):
        raise ValueError("must be https://..., or env:NAME or file:/path with such an address")
    return value


def _signing(value: SecretStr) -> SecretStr:
    text = value.get_secret_value()
    if not text.startswith(_ELSEWHERE) and standard_key(text.encode()) is None:
        raise ValueError(
            "must be whsec_ followed by base64 of 24 to 64 bytes (`sitemapd secret`), or env:NAME "
            "or file:/path with one"
        )
    return value


_Mailbox = Annotated[str, AfterValidator(_mailbox)]
_Address = Annotated[SecretStr, AfterValidator(_address)]


class EmailChannel(ConfigModel):
    """Alerts by e-mail, given to an SMTP server."""

    host: Annotated[str, AfterValidator(locations.host)] = Field(description="SMTP server")
    port: int = Field(0, ge=0, le=65_535, description="0: 587, 465 or 25, by `security`")
    security: Literal["starttls", "tls", "plain"] = Field(
        "starttls", description="TLS after STARTTLS, from the start, or none (loopback only)"
    )
    user: str = Field("", description="name for the login; empty: none")
    password: SecretStr = Field("", validate_default=True, description="for the login")
    sender: _Mailbox = Field(description="address in From")
    to: Annotated[tuple[_Mailbox, ...], Field(min_length=1, max_length=50)] = Field(
        description="addresses of the recipients"
    )

    @model_validator(mode="after")
    def _no_open_password(self) -> EmailChannel:
        if self.security == "plain" and not is_loopback(self.host):
            raise ValueError('security: "plain" only for a server on this machine')
        if bool(self.user) != bool(self.password.get_secret_value()):
            raise ValueError("user, password: set both or none")
        return self

    @property
    def used_port(self) -> int:
        """The port, by default that of `security`."""
        return self.port or _PORTS[self.security]


class WebhookChannel(ConfigModel):
    """Alerts as JSON, signed by Standard Webhooks."""

    url: _Address = Field(description="address that gets a POST")
    secret: Annotated[SecretStr, AfterValidator(_signing)] = Field(
        description="Standard Webhooks secret, by which the receiver verifies"
    )
    allow_private: bool = Field(
        False, description="allow a host in a private network, and http:// addresses"
    )


class SlackChannel(ConfigModel):
    """Alerts for Slack, or for what takes the JSON of its incoming webhooks."""

    url: _Address = Field(description="address of the incoming webhook; it is a secret")
    allow_private: bool = Field(
        False, description="allow a host in a private network, and http:// addresses"
    )


class ConditionSettings(ConfigModel):
    """Settings of one condition; `limit` is in its own unit."""

    on: bool = Field(True, description="false: no alert")
    limit: float = Field(1, ge=0, allow_inf_nan=False, description="from which on it holds")
    after_minutes: float = Field(
        2, ge=0, le=10_080, allow_inf_nan=False,
        description="minutes for which it must hold until the alert begins",
    )  # fmt: skip
    sites: tuple[str, ...] = Field((), description="sites it is watched for; empty: all")


class LateSettings(ConditionSettings):
    """Late publishing: `limit` in minutes."""

    limit: float = Field(5, ge=1, allow_inf_nan=False, description="minutes that changes wait")


class EnginesSettings(ConditionSettings):
    """Engines that are down: `limit` is their number."""

    after_minutes: float = Field(
        30, ge=0, le=10_080, allow_inf_nan=False, description="minutes, as above"
    )


class SilentSettings(ConditionSettings):
    """Silent senders: `limit` in hours, besides their habit."""

    limit: float = Field(1, ge=0, allow_inf_nan=False, description="hours without a delivery")


class DiskSettings(ConditionSettings):
    """A full disk: `limit` in per cent."""

    limit: float = Field(90, ge=1, le=100, allow_inf_nan=False, description="per cent in use")


class Alerts(ConfigModel):
    """The table `[alerts]`; off while it has no channel."""

    name: str = Field("", max_length=100, description="name in messages; empty: the host's")
    messages_per_hour: int = Field(
        12, ge=1, le=1_000, description="messages an hour at most; later ones tell of the rest"
    )
    group_seconds: float = Field(
        30, ge=0, le=3_600, allow_inf_nan=False,
        description="seconds for which alerts are gathered into one message",
    )  # fmt: skip
    end_minutes: float = Field(
        5, ge=0, le=10_080, allow_inf_nan=False,
        description="minutes for which a condition must be absent until its alert ends",
    )  # fmt: skip
    email: EmailChannel | None = None
    webhook: WebhookChannel | None = None
    slack: SlackChannel | None = None
    failed: ConditionSettings = Field({}, validate_default=True)
    late: LateSettings = Field({}, validate_default=True)
    held: ConditionSettings = Field({}, validate_default=True)
    drift: ConditionSettings = Field({}, validate_default=True)
    source: ConditionSettings = Field({}, validate_default=True)
    pages: ConditionSettings = Field({}, validate_default=True)
    engines: EnginesSettings = Field({}, validate_default=True)
    silent: SilentSettings = Field({}, validate_default=True)
    unknown: ConditionSettings = Field({}, validate_default=True)
    disk: DiskSettings = Field({}, validate_default=True)

    @property
    def channels(self) -> tuple[str, ...]:
        """The names of the configured channels."""
        return tuple(name for name in ("email", "webhook", "slack") if getattr(self, name))

    @property
    def conditions(self) -> dict[str, ConditionSettings]:
        """The conditions that are on, by name."""
        found = {name: getattr(self, name) for name in conditions.TITLES}
        return {name: each for name, each in found.items() if each.on}

    @property
    def rules(self) -> dict[str, AlertRule]:
        """The times of the conditions that are on."""
        end = int(self.end_minutes * _MINUTE_MS)
        return {
            name: AlertRule(int(each.after_minutes * _MINUTE_MS), end)
            for name, each in self.conditions.items()
        }

    def limits(self, site: str) -> Mapping[str, float]:
        """Return the limits of the conditions that are watched for `site`."""
        return {
            name: each.limit
            for name, each in self.conditions.items()
            if not each.sites or not site or site in each.sites
        }

    def unknown_sites(self, known: Mapping[str, object]) -> Iterator[str]:
        """Yield a fault for each site of a condition that is none of `known`."""
        for name in conditions.TITLES:
            for site in getattr(self, name).sites:
                if site not in known:
                    yield f"{name}.sites: {site} is not a configured site"
