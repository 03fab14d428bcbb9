"""Polls: reconciles of sitemaps and feeds that are left out because nothing of them changed."""

from __future__ import annotations

import time
from typing import NamedTuple

from shared.config.sites.site import Site
from shared.store.operations.resync_requests import ResyncRequests
from worker.sources import SourceValidators

WHOLE_S = 24 * 3600.0
"""Seconds after which a source is read whatever its validators say: so drift of the listed pages
is found, too."""


class _Reading(NamedTuple):
    """The last complete reading of a source: the reconcile it was for, and when it was (s)."""

    source: str
    began_ms: int
    read_s: float
    validators: SourceValidators


class SourcePolls:
    """The last readings by this process, by the name of the site."""

    def __init__(self) -> None:
        self._readings: dict[str, _Reading] = {}

    def unchanged(self, name: str, site: Site, resyncs: ResyncRequests) -> bool:
        """Return True if a due reconcile of the whole site is complete: nothing changed since.

        Only where this process did the last one, of the same source. Raises SourceError and
        StoreError.
        """
        last, source = self._readings.get(name), site.source.get_secret_value()
        if last is None or last.source != source or last.began_ms != resyncs.last_ms():
            return False
        began = resyncs.begin_ms()
        if time.monotonic() - last.read_s > WHOLE_S or not last.validators.unchanged(
            source.removeprefix("sitemap:")
        ):
            return False
        resyncs.completed(began)
        self._readings[name] = last._replace(began_ms=began)
        return True

    def read(
        self, name: str, site: Site, resyncs: ResyncRequests, validators: SourceValidators
    ) -> None:
        """Remember a complete reconcile of the whole site."""
        source = site.source.get_secret_value()
        self._readings[name] = _Reading(source, resyncs.last_ms(), time.monotonic(), validators)
