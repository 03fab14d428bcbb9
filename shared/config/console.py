"""The configuration of the console: its origins, its users and their roles."""

from __future__ import annotations

import hashlib
import ipaddress
import re
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    model_validator,
)

from shared.errors import UrlError
from shared.sitemap.urls import Base

LEAST_TOKEN = 24
Role = Literal["viewer", "operator"]

_USER = re.compile(r"[a-z0-9][a-z0-9._@-]{0,63}")
_SHA256 = re.compile(r"[0-9a-f]{64}")


def is_loopback(host: str) -> bool:
    """True if `host`, a name or an address without brackets, is this machine itself."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _origin(text: str) -> str:
    try:
        base = Base.parse(text)
    except UrlError as error:
        raise ValueError(error.detail) from error
    if base.path != "/":
        raise ValueError("must be scheme, host and port only; the console is at /admin/")
    if base.origin.startswith("http:") and not is_loopback(urlsplit(base.origin).hostname or ""):
        raise ValueError("must begin with https://: plain http exposes the session")
    return base.origin


def _several(value: object) -> object:
    return (value,) if isinstance(value, str) else value


def _user_name(name: str) -> str:
    if not _USER.fullmatch(name):
        raise ValueError("a user name must match [a-z0-9][a-z0-9._@-]{0,63}")
    return name


def _token(value: SecretStr | None) -> SecretStr | None:
    text = value.get_secret_value() if value else "x" * LEAST_TOKEN
    if len(text) < LEAST_TOKEN or not (text.isascii() and text.isprintable()):
        raise ValueError(f"must have at least {LEAST_TOKEN} printable ASCII characters")
    return value


def _sha256(text: str) -> str:
    if text and not _SHA256.fullmatch(text):
        raise ValueError("must be 64 lower-case hexadecimal digits, the SHA-256 of the token")
    return text


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


class User(_Model):
    """A user of the console: token and role."""

    token: Annotated[SecretStr | None, AfterValidator(_token)] = Field(
        None, description="login token: random, at least 24 characters"
    )
    token_sha256: Annotated[str, AfterValidator(_sha256)] = Field(
        "", description="SHA-256 of the token in hexadecimal, in place of the token"
    )
    role: Role = Field("viewer", description="viewer: read only; operator: may also act")

    @model_validator(mode="after")
    def _one_token(self) -> User:
        if (self.token is None) == (not self.token_sha256):
            raise ValueError("set exactly one of token and token_sha256")
        return self

    @property
    def digest(self) -> bytes:
        """SHA-256 of the token; without a salt, as the token is random and long."""
        if self.token is None:
            return bytes.fromhex(self.token_sha256)
        return hashlib.sha256(self.token.get_secret_value().encode("ascii")).digest()

    @property
    def stamp(self) -> str:
        """Mark of the token in a session, so that a new token ends the sessions of the old one."""
        return hashlib.sha256(self.digest).hexdigest()


class Console(_Model):
    """The console at /admin/; off while it has no users."""

    origin: Annotated[
        tuple[Annotated[str, AfterValidator(_origin)], ...], BeforeValidator(_several)
    ] = Field((), description="origins at which browsers reach it; empty: loopback, any port")
    session_hours: float = Field(
        12, gt=0, le=720, allow_inf_nan=False, description="hours until a session expires"
    )
    users: dict[Annotated[str, AfterValidator(_user_name)], User] = Field({})
