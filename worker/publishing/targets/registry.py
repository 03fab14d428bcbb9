"""Targets of a site, opened: the kind of each by its address."""

from __future__ import annotations

from datetime import timedelta
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from shared.config.notify.engines import secret_of
from shared.config.sites.site import Site
from shared.config.sites.targets import NO_DIRECTORY, TargetSettings, host_name
from shared.errors import CredentialError, PublishError
from worker.publishing.targets.target import Target
from worker.publishing.targets.web_root import WebRoot

if TYPE_CHECKING:
    from obstore.store import ObjectStore

REQUEST_S = 5
"""Seconds that a request to object storage may take, and in which it may be repeated: within the
lease of a publisher.
"""
RETRIES = 2


def own_settings(site: Site) -> TargetSettings:
    """Return the target that this host publishes first. Raises PublishError if it has none."""
    here = site.targets_of(host := host_name())
    if not here:
        raise PublishError(
            f"no target of this site is written by the host {host}: start the worker with --host "
            "and the host of a target, or add one"
        )
    return here[0]


def open_own(site: Site) -> Target:
    """Return the target of `site` that this host publishes first, opened. Raises PublishError."""
    if site.web_root != NO_DIRECTORY and not site.targets:
        return WebRoot(site.web_root)
    return open_target(site, own_settings(site))


def stands(site: Site) -> bool:
    """Return True if the target that this host publishes first exists. Raises PublishError."""
    settings = own_settings(site)
    return bool(settings.scheme) or Path(settings.url).is_dir()


def open_target(site: Site, settings: TargetSettings) -> Target:
    """Return one target of `site`, opened. Raises PublishError."""
    if not settings.scheme:
        return WebRoot(Path(settings.url))
    from worker.publishing.targets.object_storage import ObjectStorage

    return ObjectStorage(
        _store(settings), settings.url.rstrip("/"),
        cache_control=settings.cache_control, encoded=site.form == "encoded",
    )  # fmt: skip


@lru_cache(256)
def _store(settings: TargetSettings) -> ObjectStore:
    """Return the client of a bucket, made once: its connections are kept."""
    try:
        from obstore import store
        from obstore.exceptions import BaseError
    except ImportError:
        raise PublishError(
            f"{settings.url} needs the library obstore: pip install 'sitemapd[buckets]'"
        ) from None
    parts = urlsplit(settings.url)
    client: Any = {"timeout": timedelta(seconds=REQUEST_S), "allow_http": settings.allow_http}
    shared: Any = {
        "prefix": parts.path.strip("/") or None, "client_options": client,
        "retry_config": {"max_retries": RETRIES, "retry_timeout": timedelta(seconds=REQUEST_S)},
    }  # fmt: skip
    given: Any = _given(settings)
    try:
        match settings.scheme:
            case "s3":
                return store.S3Store(parts.netloc, region=settings.region, **given, **shared)
            case "gs":
                return store.GCSStore(parts.netloc, **given, **shared)
            case _:
                return store.AzureStore(parts.netloc, **given, **shared)
    except (BaseError, ValueError) as error:
        raise PublishError(f"{settings.url}: {str(error).splitlines()[0]}") from None


def _given(settings: TargetSettings) -> dict[str, str]:
    """Return the configured address and credentials, by the names of the library."""
    found = {"endpoint": settings.endpoint, "account_name": settings.account_name}
    secrets = (
        ("access_key_id", "access_key_id"), ("secret_access_key", "secret_access_key"),
        ("service_account_key", "service_account"), ("account_key", "account_key"),
    )  # fmt: skip
    try:
        for name, option in secrets:
            if settings.key(option):
                found[name] = secret_of(getattr(settings, option))
    except CredentialError as error:
        raise PublishError(f"{settings.url}: {error}") from None
    return {name: value for name, value in found.items() if value}
