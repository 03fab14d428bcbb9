"""Options of `event send` for the members of an event, each by the name of its member.

Members with parts of their own (images, videos, news, alternates) are sent with `--file`.
"""

from __future__ import annotations

from typing import Annotated

import typer

LocArgument = Annotated[str | None, typer.Argument(help="URL of the page")]
TypeOption = Annotated[str, typer.Option("--type", help="upsert, delete or resync")]
IdOption = Annotated[str | None, typer.Option("--id", help="the CMS's id of the page")]
SectionOption = Annotated[
    str | None,
    typer.Option(
        "--section", help="section of the page, default: by path and language; or of a resync"
    ),
]
PrefixOption = Annotated[
    str | None, typer.Option("--prefix", help="of a resync: begin of the URLs of its pages")
]
LastmodOption = Annotated[str | None, typer.Option("--lastmod", help="W3C date or datetime")]
VersionOption = Annotated[
    str | None,
    typer.Option("--version", help="version of the event: W3C datetime or ms since 1970"),
]
ChangefreqOption = Annotated[
    str | None, typer.Option("--changefreq", help="how often the page changes, such as weekly")
]
PriorityOption = Annotated[
    str | None, typer.Option("--priority", help="priority of the page, 0.0 to 1.0")
]
PublishedOption = Annotated[
    str | None, typer.Option("--published", help="W3C date or datetime of the first publication")
]
PublishAtOption = Annotated[
    str | None,
    typer.Option("--publish-at", help="W3C date or datetime from which the page is listed"),
]
ExpiresOption = Annotated[
    str | None,
    typer.Option("--expires", help="W3C date or datetime until which the page is listed"),
]
NoindexOption = Annotated[bool, typer.Option("--noindex", help="the page must not be listed")]
CanonicalOption = Annotated[
    str | None, typer.Option("--canonical", help="canonical URL; of another page: not listed")
]
StatusOption = Annotated[
    int | None,
    typer.Option("--status", help="what the page answers: 404, 410, 301 and 308 take it out"),
]
RedirectToOption = Annotated[
    str | None, typer.Option("--redirect-to", help="URL to which the page has moved: takes it out")
]
GroupOption = Annotated[
    str | None, typer.Option("--group", help="translation group of the page; needs --lang")
]
LangOption = Annotated[
    list[str] | None,
    typer.Option("--lang", metavar="<str>", help="language, as en or x-default; may be repeated"),
]
TitleOption = Annotated[
    str | None, typer.Option("--title", help="title, for feeds, llms.txt and the HTML sitemap")
]
DescriptionOption = Annotated[
    str | None, typer.Option("--description", help="what the page is about, for llms.txt")
]
