"""Options of a source besides its address."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

from worker.sources.source_validators import SourceValidators

if TYPE_CHECKING:
    from shared.config.sites.cms_connections import Connection
    from shared.config.sites.site import Site


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """A secret `key`, and the `query` that returns a database's pages; empty: none.

    `connections` are the CMSes of the site, whose permalinks make the addresses below `origin`.
    `wait` sleeps that many seconds where a server asks for it. A sitemap or feed adds the
    `validators` of its documents.
    """

    key: str = field(default="", repr=False)
    query: str = ""
    connections: Mapping[str, Connection] = field(default_factory=dict, repr=False)
    origin: str = ""
    wait: Callable[[float], None] = field(default=time.sleep, repr=False, compare=False)
    validators: SourceValidators = field(
        default_factory=SourceValidators, repr=False, compare=False
    )

    @classmethod
    def of(
        cls, site: Site, key: str, query: str, wait: Callable[[float], None] = time.sleep
    ) -> Self:
        """Return the options for a source of `site`."""
        return cls(key, query, site.sources, site.base.origin, wait)


NO_ACCESS = SourceOptions()
