"""Credentials of senders: Standard Webhooks secrets and Bearer tokens."""

from __future__ import annotations

import math
from datetime import UTC, datetime

from pydantic import BaseModel, ConfigDict, Field, SecretStr, model_validator

from shared.config.sites import cms_connections
from shared.config.standard_secret import standard_key


class ConfigModel(BaseModel):
    """Base class of settings: unknown keys are refused, values never change."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


class Secret(ConfigModel):
    """One Standard Webhooks secret, `whsec_` and base64 of 24 to 64 bytes."""

    secret: SecretStr
    until: datetime | None = Field(None, description="end of validity, for rotation")

    @model_validator(mode="after")
    def _decodable(self) -> Secret:
        if standard_key(self.secret.get_secret_value().encode()) is None:
            raise ValueError(
                "must be whsec_ followed by base64 of 24 to 64 bytes; `sitemapd secret` "
                "generates one"
            )
        return self

    def key(self, now: datetime) -> bytes | None:
        """The raw key, None if the secret has expired at `now`."""
        return None if now.timestamp() >= self.expires else self.raw

    @property
    def raw(self) -> bytes:
        """The raw key, expired or not."""
        return standard_key(self.secret.get_secret_value().encode()) or b""

    @property
    def expires(self) -> float:
        """The end of its time in seconds since 1970; infinity without `until`."""
        until = self.until
        if until is None:
            return math.inf
        return (until if until.tzinfo else until.replace(tzinfo=UTC)).timestamp()

    @property
    def fingerprint(self) -> str:
        """The name of the key in metrics and logs, expired or not."""
        return cms_connections.fingerprint(self.raw)


def from_text(value: object) -> object:
    """A secret given as bare text, as a table of its fields."""
    return {"secret": value} if isinstance(value, str) else value


def token(value: SecretStr) -> SecretStr:
    """Return `value` if it can be a Bearer token. Raises ValueError."""
    if len(value.get_secret_value()) < 16 or not value.get_secret_value().isascii():
        raise ValueError("must have at least 16 ASCII characters")
    return value
