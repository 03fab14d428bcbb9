"""Tables `targets` of a site: the directories and buckets to which its files are published."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, SecretStr, model_validator

from shared.config import locations
from shared.config.credentials import ConfigModel

HOST = "SITEMAPD_HOST"
"""Environment variable with the name of this host; `--host` of a worker sets it."""

NO_DIRECTORY = Path("/nonexistent/sitemapd")
"""`web_root` of a site without a directory on this host: nothing is there, so nothing is served."""

WEB_ROOT = "web-root"
"""Name of the target that `web_root` stands for."""

SCHEMES = {"s3": "Amazon S3 and what speaks its protocol", "gs": "Google Cloud", "az": "Azure"}
CACHED = "max-age=0, must-revalidate"

_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,31}", re.ASCII)
_BUCKET = re.compile(r"[a-z0-9][a-z0-9._-]{1,62}", re.ASCII)
_PREFIX = re.compile(r"(?:/[A-Za-z0-9._~-]+)*/?", re.ASCII)
_OF = {
    "s3": {"endpoint", "region", "access_key_id", "secret_access_key", "allow_http"},
    "gs": {"service_account"},
    "az": {"endpoint", "account_name", "account_key", "allow_http"},
    "": {"host"},
}
"""The options of each kind of target."""


def host_name() -> str:
    """The name of this host: that of `--host` or SITEMAPD_HOST, else the system's."""
    return os.environ.get(HOST) or socket.gethostname()


def _name(text: str) -> str:
    if text and not _NAME.fullmatch(text):
        raise ValueError("must match [a-z0-9-]{1,32}, e.g. bucket or web1")
    return text


def _host(text: str) -> str:
    return locations.host(text) if text else text


def _url(text: str) -> str:
    scheme, separator, _ = text.partition("://")
    if not separator:
        locations.web_root(text)
        return text
    if scheme not in SCHEMES:
        known = ", ".join(f"{each}://" for each in SCHEMES)
        raise ValueError(f"must be a directory, or begin with one of {known}")
    parts = urlsplit(text)
    odd = parts.query or parts.fragment or ".." in parts.path.split("/")
    if odd or not _BUCKET.fullmatch(parts.netloc) or not _PREFIX.fullmatch(parts.path):
        raise ValueError(f"must be of the form {scheme}://bucket or {scheme}://bucket/prefix")
    return text


def _endpoint(text: str) -> str:
    if text and (not locations.http_address(text) or set("?#@") & set(text)):
        raise ValueError("must be an address of the form https://host:port")
    return text


class TargetSettings(ConfigModel):
    """One place to which the files of a site are published."""

    url: Annotated[str, AfterValidator(_url)] = Field(
        description="a directory, or s3://bucket/prefix, gs://bucket/prefix, az://container/prefix"
    )
    name: Annotated[str, AfterValidator(_name)] = Field(
        "", description="its name in status, logs and metrics; empty: the host or the bucket"
    )
    host: Annotated[str, AfterValidator(_host)] = Field(
        "", description="directory: only the worker started with this --host writes it; empty: any"
    )
    endpoint: Annotated[str, AfterValidator(_endpoint)] = Field(
        "", description="address of a storage that speaks S3's or Azure's protocol"
    )
    region: str = Field("us-east-1", pattern=r"^[a-z0-9-]{1,32}$", description="region of S3")
    access_key_id: SecretStr = Field(
        "", validate_default=True, description="S3: env:NAME or file:/path; empty: AWS's own chain"
    )
    secret_access_key: SecretStr = Field("", validate_default=True, description="S3: likewise")
    service_account: SecretStr = Field(
        "", validate_default=True, description="Google Cloud: JSON key, as env:NAME or file:/path"
    )
    account_name: str = Field("", pattern=r"^[a-z0-9]{0,24}$", description="Azure: account")
    account_key: SecretStr = Field(
        "", validate_default=True, description="Azure: its key, as env:NAME or file:/path"
    )
    cache_control: str = Field(
        CACHED, pattern=r"^[A-Za-z0-9=, -]{0,200}$", description="Cache-Control of each object"
    )
    allow_http: bool = Field(False, description="allow an endpoint without TLS")

    @model_validator(mode="after")
    def _fits_together(self) -> TargetSettings:
        given = {name for name in self.model_fields_set if getattr(self, name) or name == "region"}
        others = set().union(*_OF.values()) - _OF[self.scheme]
        if odd := sorted(given & others):
            kind = f"{self.scheme}://" if self.scheme else "a directory"
            raise ValueError(f"{odd[0]}: is no option of {kind}")
        if bool(self.key("access_key_id")) != bool(self.key("secret_access_key")):
            raise ValueError("secret_access_key: needs access_key_id, and the other way round")
        if self.scheme == "az" and not self.account_name:
            raise ValueError("account_name: is needed for az://")
        if self.endpoint.startswith("http:") and not self.allow_http:
            raise ValueError("endpoint: use https://, or set allow_http = true")
        return self

    def key(self, name: str) -> str:
        """The secret option `name` as it is written in the configuration."""
        found: SecretStr = getattr(self, name)
        return found.get_secret_value()

    @property
    def scheme(self) -> str:
        """`s3`, `gs`, `az`; empty for a directory."""
        return self.url.partition("://")[0] if "://" in self.url else ""

    @property
    def ident(self) -> str:
        """Its name: `name`, by default the host or the bucket."""
        bucket = urlsplit(self.url).netloc if self.scheme else ""
        slug = re.sub(r"[^a-z0-9]+", "-", (bucket or self.host or WEB_ROOT).lower())
        return self.name or slug.strip("-")[:32]

    def is_here(self, host: str) -> bool:
        """True if workers of `host` write this target: buckets are written by any."""
        return not self.host or self.host == host


def faults(targets: Sequence[TargetSettings]) -> Iterator[str]:
    """Faults of the targets of one site."""
    names, places = dict[str, str](), set[tuple[str, str]]()
    for each in targets:
        if each.ident in names:
            both = f"{each.url} and {names[each.ident]} are both called {each.ident}"
            yield f"targets: {both}: give one another name"
        names[each.ident] = each.url
        place = (each.host, f"{each.endpoint} {each.url.rstrip('/')}")
        if place in places:
            yield f"targets: {each.url} is given twice"
        places.add(place)
