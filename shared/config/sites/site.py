"""The configuration of one site: its base URL, web root, senders, sections and limits."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    SecretStr,
    ValidationInfo,
    model_validator,
)

from shared.config import locations
from shared.config.credentials import ConfigModel, Secret, from_text, token
from shared.config.notify.tables import NotifySettings
from shared.config.sites import cms_connections, import_source, targets
from shared.config.sites.cms_connections import Connection, SourceName
from shared.config.sites.outputs import OutputSettings, text_line
from shared.config.sites.pages import LookSettings, as_table
from shared.config.sites.readback import ReadbackSettings
from shared.config.sites.section import MAX_NEWS, Section, archive_faults, section_name
from shared.config.sites.targets import NO_DIRECTORY, WEB_ROOT, TargetSettings
from shared.domain.routing import DEFAULT_SECTION, Routing
from shared.domain.shrink_guard import ShrinkRule
from shared.events.event_fields import EventRules
from shared.sitemap import shards
from shared.sitemap.shards import Limits
from shared.sitemap.urls import Base
from shared.sitemap.xml_text import one_line

SMALLEST_SHARD = 16_384
"""Bytes: the fragment of one URL has 12.4 KB if every character must be escaped."""


def _web_root(given: object, info: ValidationInfo) -> object:
    if given is None and info.data.get("targets"):
        return NO_DIRECTORY
    if given is None:
        raise ValueError("is needed: a directory for the files, or targets")
    return locations.web_root(given)


class Site(ConfigModel):
    """Settings of one site."""

    base_url: Annotated[str, AfterValidator(cms_connections.base_url)] = Field(
        description="scheme, host, port (and directory) of every loc"
    )
    targets: tuple[TargetSettings, ...] = Field(
        (), description="further places for the files, or all: directories of hosts, buckets"
    )
    web_root: Annotated[Path, BeforeValidator(_web_root)] = Field(
        None,
        validate_default=True,
        description="directory for the files; relative to the TOML file",
    )
    secrets: tuple[Annotated[Secret, BeforeValidator(from_text)], ...] = Field(
        (), description="Standard Webhooks secrets; several for rotation"
    )
    tokens: tuple[Annotated[SecretStr, AfterValidator(token)], ...] = Field(
        (), description="Bearer tokens: senders without signatures, and the read API"
    )
    form: Literal["xml", "xml.gz", "encoded", "txt", "txt.gz"] = Field(
        "xml", description="format of shard files"
    )
    viewer: bool = Field(
        True, description="write sitemap.css and sitemap.html, for reading in a browser"
    )
    feed: bool = Field(
        False, description="write atom.xml and rss.xml: the newest changes (PROTOCOL F11)"
    )
    feed_entries: int = Field(100, ge=10, le=1_000, description="number of pages in the feeds")
    hub: Annotated[str, AfterValidator(cms_connections.optional_url)] = Field(
        "", description="URL of the WebSub hub named in the feeds"
    )
    title: Annotated[str, AfterValidator(text_line)] = Field(
        "", max_length=500, description="title of the feeds; empty: the host"
    )
    publish_interval: float = Field(
        1.0,
        ge=0,
        le=3600,
        description="seconds between publishes under load; below 1 files are dated up to 3 s"
        " ahead of the clock",
    )
    # 500: two dozen sites that send too much at once are still drained as fast as they send (12,000
    # events a second on two cores), and saving 60,000 pages at once passes.
    rate: float = Field(
        500,
        ge=0,
        le=1_000_000,
        allow_inf_nan=False,
        description="sustained events a second; a burst may have two minutes' worth; 0: no limit",
    )
    robots: Literal["off", "edit", "create"] = Field(
        "off", description="maintain the Sitemap: lines of robots.txt"
    )
    index: bool = Field(
        True, description="false: no index, robots.txt lists every file (Baidu, PROTOCOL N8)"
    )
    hints: bool = Field(False, description="list changefreq and priority (PROTOCOL M8)")
    shard_urls: int = Field(shards.DEFAULT_URLS, ge=1, le=shards.MAX_URLS)
    shard_bytes: int = Field(shards.MAX_BYTES, ge=SMALLEST_SHARD, le=shards.MAX_BYTES)
    index_shards: int = Field(shards.DEFAULT_INDEX, ge=1, le=shards.MAX_INDEX)
    emit_deprecated: bool = Field(
        False, description="publish tags that search engines ignore today (PROTOCOL I2, V9, W9)"
    )
    engines: tuple[Literal["yandex", "baidu"], ...] = Field(
        (), description="warn senders about the limits of these search engines (PROTOCOL L2, N8)"
    )
    check_interval: float = Field(
        60.0, ge=0, le=86_400, description="seconds between checks of the files; 0: never (F23)"
    )
    retire_hours: float = Field(
        24, ge=0, le=8_784, allow_inf_nan=False,
        description="hours until files of an earlier form or index are removed",
    )  # fmt: skip
    shrink_share: float = Field(
        0.5, ge=0, le=1,
        description="share of a file's pages that may be removed at once; 1: all (T32)",
    )  # fmt: skip
    shrink_minutes: float = Field(
        10, gt=0, le=10_080, description="minutes over which removals add up for shrink_share"
    )
    shrink_least: int = Field(50, ge=1, description="fewer pages than this may always be removed")
    source: SecretStr = Field(
        "", validate_default=True, description="the source of truth: wordpress:https://..., ..."
    )
    source_key: SecretStr = Field(
        "", validate_default=True, description="credentials for the source: key or password"
    )
    source_query: str = Field(
        "", description="sql: the SELECT that returns the pages; sanity: the projection"
    )
    reconcile_hours: float = Field(
        0, ge=0, le=8_784, allow_inf_nan=False,
        description="hours between two reconciles; 0: only on a resync",
    )  # fmt: skip
    sections: dict[Annotated[str, AfterValidator(section_name)], Section] = Field(
        {}, description=f"`{DEFAULT_SECTION}` always exists"
    )
    translations: Annotated[str, AfterValidator(one_line)] = Field(
        "", max_length=64,
        description="translation groups are shared with the sites that name the same here",
    )  # fmt: skip
    sources: dict[SourceName, Connection] = Field({}, description="connected CMSes")
    outputs: OutputSettings = Field(
        OutputSettings.model_construct(), description="further forms and files of what is published"
    )
    pages: Annotated[LookSettings | None, BeforeValidator(as_table)] = Field(
        None, description="looks at the pages; off without the table"
    )
    notify: NotifySettings = Field(
        NotifySettings(), description="search engines to notify of changes"
    )
    readback: ReadbackSettings = Field(
        {}, validate_default=True, description="search engines to ask which pages they know"
    )

    @model_validator(mode="after")
    def _fits_together(self) -> Site:
        if found := [*self._of_connections(), *self._of_senders(), *self._of_files()]:
            raise ValueError("\n".join(found))
        return self

    def _of_connections(self) -> Iterator[str]:
        known = frozenset({DEFAULT_SECTION, *self.sections})
        source, key = self.source.get_secret_value(), self.source_key.get_secret_value()
        kind = import_source.kind_of(source)
        for name, connection in self.sources.items():
            yield from cms_connections.faults(name, connection, known, kind)
            yield from cms_connections.elsewhere(name, connection, self.base)
            yield from cms_connections.barred(name, connection, self.notify.allowed)
        yield from self.notify.faults(self.base, self.hub, known, feed=self.feed)
        yield from self.readback.faults(self.notify)
        yield from import_source.faults(source, key, self.source_query, self.reconcile_hours)

    def _of_senders(self) -> Iterator[str]:
        if not self.secrets and not self.tokens:
            yield "tokens: configure at least one of secrets and tokens, or nobody can send events"

    def _of_files(self) -> Iterator[str]:
        if not self.index and self.robots == "off":
            yield 'index: without an index, robots.txt must list the files: set robots = "edit"'
        if not self.index and self.base.path != "/":
            yield (
                "index: without an index, robots.txt must list the files, and crawlers read only "
                f"that of {self.base.origin}/, which is not in a web root below {self.base.path}"
            )
        yield from targets.faults(self.every_target)
        yield from archive_faults(self.sections)
        yield from self.outputs.faults(self.form, index=self.index, keeps_robots=self.keeps_robots)
        if self.form in shards.TEXT_FORMS and any(each.news for each in self.sections.values()):
            yield "form: txt files list URLs only and cannot contain news"

    @property
    def base(self) -> Base:
        """`base_url` as a Base."""
        return Base.parse(self.base_url)

    @property
    def every_target(self) -> tuple[TargetSettings, ...]:
        """The places to which the files are published: `web_root`, then `targets`."""
        root = str(self.web_root)
        if self.web_root == NO_DIRECTORY or root in {each.url for each in self.targets}:
            return self.targets
        # No validation: a path of another platform or test is as good as it was as web_root.
        first = TargetSettings.model_construct(url=root, name=WEB_ROOT)
        return (first, *self.targets)

    def targets_of(self, host: str) -> list[TargetSettings]:
        """The targets that workers of `host` write."""
        return [each for each in self.every_target if each.is_here(host)]

    @property
    def several_targets(self) -> tuple[TargetSettings, ...]:
        """`every_target` of a site with more than one, each of which has a state of its own."""
        every = self.every_target if self.targets else ()
        return every if len(every) > 1 else ()

    @property
    def recent_entries(self) -> int:
        """The number of pages whose last change, title and description are kept, for feeds and
        llms.txt.
        """
        listed = self.outputs.llms_entries if self.outputs.llms else 0
        return max(self.feed_entries if self.feed else 0, listed)

    @property
    def keeps_robots(self) -> bool:
        """True if robots.txt is written into the web root: crawlers read only the host's (R1)."""
        return self.robots != "off" and self.base.path == "/"

    @property
    def waits_ms(self) -> tuple[int, int]:
        """Milliseconds for which new pages, and dates, wait for a look at the page; 0: not."""
        return (self.pages.gate_ms, self.pages.prove_ms) if self.pages else (0, 0)

    @property
    def feed_title(self) -> str:
        """`title`, by default the host."""
        return self.title or self.base.origin.partition("://")[2]

    @property
    def rules(self) -> EventRules:
        """The rules for events of this site."""
        return EventRules(
            self.base,
            frozenset({DEFAULT_SECTION, *self.sections}),
            news=frozenset(name for name, section in self.sections.items() if section.news),
            deprecated=self.emit_deprecated,
            most_bytes=min(limits.hard for limits in self.limits.values()),
            engines=frozenset(self.engines),
        )

    @property
    def shrink(self) -> ShrinkRule:
        """The shrink guard's rule: the share of a file's pages that may go at once."""
        return ShrinkRule.of(self.shrink_share, self.shrink_minutes, self.shrink_least)

    @property
    def limits(self) -> dict[str, Limits]:
        """The capacity of a shard, by section."""
        found = {DEFAULT_SECTION: Limits(self.shard_urls, self.shard_bytes)}
        for name, section in self.sections.items():
            if section.news:
                # One block: a page that leaves makes room for a new one.
                urls = section.shard_urls or MAX_NEWS
                found[name] = Limits(urls, self.shard_bytes, urls, self.shard_bytes, reuse=True)
            else:
                found[name] = Limits(section.shard_urls or self.shard_urls, self.shard_bytes)
        return found

    @property
    def routing(self) -> Routing:
        """The routing of pages to the sections."""
        return Routing({name: section.family for name, section in self.sections.items()})
