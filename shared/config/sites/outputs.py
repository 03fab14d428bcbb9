"""Table `outputs` of a site: further forms and files of what it publishes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from pydantic import AfterValidator, Field

from shared.config.credentials import ConfigModel
from shared.config.sites.cms_connections import absolute_url
from shared.sitemap.xml_text import legal, one_line

MOST_HOSTS = 1_000
"""Sites that one index of several hosts lists, and addresses that a robots.txt names besides."""


def text_line(text: str) -> str:
    """`text` on one line, without what no XML file can hold."""
    return one_line(legal(text))


class OutputSettings(ConfigModel):
    """Further forms and files of what a site publishes."""

    gzip_index: bool = Field(
        False, description="the index is sitemap.xml.gz in place of sitemap.xml (PROTOCOL F9)"
    )

    change_list: bool = Field(
        False, description="write changelist.xml: created, updated and deleted pages (ResourceSync)"
    )
    change_list_entries: int = Field(
        1_000, ge=10, le=50_000, description="number of changes that the change list keeps"
    )

    llms: bool = Field(False, description="write llms.txt: titled pages with their descriptions")
    llms_entries: int = Field(500, ge=10, le=10_000, description="number of pages in llms.txt")
    llms_summary: Annotated[str, AfterValidator(text_line)] = Field(
        "", max_length=2_000, description="what the site is, in llms.txt"
    )

    html: bool = Field(
        False, description="write sitemap-contents.html and pages of links, for visitors"
    )

    hosts: tuple[str, ...] = Field(
        (), max_length=MOST_HOSTS,
        description="write sitemap-hosts.xml: one index of this site and of these (PROTOCOL R11)",
    )  # fmt: skip
    robots_also: tuple[Annotated[str, AfterValidator(absolute_url)], ...] = Field(
        (), max_length=MOST_HOSTS,
        description="further sitemaps that robots.txt names, such as sitemap-hosts.xml of another",
    )  # fmt: skip

    @property
    def files(self) -> bool:
        """True if any further file is written."""
        return self.change_list or self.llms or self.html or bool(self.hosts)

    def faults(self, form: str, *, index: bool, keeps_robots: bool) -> Iterator[str]:
        """Yield what does not fit the `form` of the site's files, a site without an `index`, or one
        that does not write robots.txt.
        """
        if self.gzip_index and not index:
            yield "outputs.gzip_index: there is no index: set index = true"
        if self.gzip_index and form == "encoded":
            yield (
                'outputs.gzip_index: with form = "encoded" files are packed on disk and listed as '
                ".xml: an index listed as .xml.gz does not go with it"
            )
        if self.robots_also and not keeps_robots:
            yield (
                'outputs.robots_also: robots.txt is left alone: set robots = "edit" or "create"; '
                "crawlers read only that of the host, not one below base_url"
            )
