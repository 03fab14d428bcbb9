"""The configuration of one section of a site: its files, and the pages that it takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from shared.config import locations
from shared.config.credentials import ConfigModel
from shared.domain.archive_rules import ArchiveRule
from shared.domain.routing import DEFAULT_SECTION, Family
from shared.sitemap import shards
from shared.sitemap.entry import priority_text

MAX_NEWS = 1_000


def section_name(name: str) -> str:
    """Return `name` if files can be named after it. Raises ValueError."""
    if not shards.SECTION.fullmatch(name) or name in shards.RESERVED:
        known = ", ".join(sorted(shards.RESERVED))
        raise ValueError(f"a section name must match [a-z0-9-]{{1,32}} and be none of {known}")
    if shards.NUMBERED.search(name):
        raise ValueError(
            "a section name must not end in a hyphen and digits, like the names of its files"
        )
    return name


_STATED: Mapping[str, Callable[[str], str]] = {
    "changefreq": str, "kind": str, "priority": lambda text: priority_text(text) or text,
}  # fmt: skip
"""The form in which an event holds a value, by field."""


class Section(ConfigModel):
    """A family of pages with shards of its own."""

    news: bool = Field(False, description="Google News rules: at most 1,000 URLs per file")
    shard_urls: int | None = Field(None, ge=1, le=shards.MAX_URLS, description="URLs per file")
    split: Literal["", "month", "language"] = Field(
        "", description="files by month of publication, or by language"
    )
    paths: tuple[Annotated[str, AfterValidator(locations.path_pattern)], ...] = Field(
        (), description="path patterns (`/blog/*`) of pages whose events name no section"
    )
    languages: tuple[Annotated[str, AfterValidator(locations.language)], ...] = Field(
        (),
        description="languages of pages whose events name no section; of a news section: of its "
        "articles",
    )
    keep_empty: bool = Field(
        False, description="news: keep the file while it is empty (PROTOCOL F12)"
    )

    archives: str = Field("", description="takes pages of this section by the rules that follow")
    after_days: int = Field(
        0, ge=0, le=36_500, description="archives: days after their lastmod; 0: whatever their age"
    )
    fields: dict[Literal["changefreq", "priority", "kind"], tuple[str, ...]] = Field(
        {}, description="archives: values of members of their events, as {changefreq = ['never']}"
    )

    @model_validator(mode="after")
    def _archives_by_a_rule(self) -> Section:
        if not self.archives and (self.after_days or self.fields):
            raise ValueError("after_days, fields: only for a section that archives another")
        if self.archives and not (self.after_days or self.fields):
            raise ValueError("archives: give after_days, fields, or both")
        if self.archives and (self.news or self.split or self.paths or self.languages):
            raise ValueError("archives: excludes news, split, paths and languages")
        return self

    @model_validator(mode="after")
    def _news_is_short(self) -> Section:
        if self.news and (self.shard_urls or 0) > MAX_NEWS:
            raise ValueError(f"shard_urls: at most {MAX_NEWS} for news (PROTOCOL W3)")
        if self.news and (self.split or self.paths):
            raise ValueError(
                "split, paths: not for a news section, which lists the news of all others"
            )
        if self.keep_empty and not self.news:
            raise ValueError("keep_empty: only for a news section (PROTOCOL F12, W10)")
        return self

    @property
    def family(self) -> Family:
        """The rules by which this section takes pages."""
        languages = tuple(code.lower() for code in self.languages)
        rule = None
        if self.archives:
            fields = [(name, frozenset(map(_STATED[name], of))) for name, of in self.fields.items()]
            rule = ArchiveRule(self.archives, self.after_days, tuple(fields))
        return Family(self.split, self.paths, languages, self.news, rule)


def archive_faults(sections: Mapping[str, Section]) -> Iterator[str]:
    """Yield what is wrong with the archives among `sections`."""
    active: set[str] = set()
    plain = {n for n, each in sections.items() if not (each.news or each.archives)}
    for name, section in sections.items():
        if not section.archives:
            continue
        if section.archives not in plain | {DEFAULT_SECTION} or section.archives == name:
            detail = "must name another section, not of news and no archive"
            yield f"sections.{name}.archives: {detail}"
        if section.archives in active:
            yield f"sections.{name}.archives: {section.archives} has an archive already"
        active.add(section.archives)
