"""The commands `site add`, `site list`, `site remove` and `section add`."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

import typer

from deploy.cli.examples import examples
from deploy.cli.output import HomeOption, JsonOption, answer, ask, columns, find_any, line, note
from deploy.commands.admin import YesOption
from deploy.commands.changes import ConfigTarget, send_line
from shared.config.edit import changes
from shared.config.edit.changes import Split, section_values
from shared.errors import Fault, InvalidError, SitemapdError
from shared.visible_text import few

if TYPE_CHECKING:
    import redis

    from shared.config.sites.site import Site

LEAVE_S = 90.0
"""Seconds that `--delete-files` waits until no worker works on the site."""

site = typer.Typer(help="List, add and remove sites, without a restart.", no_args_is_help=True)
section = typer.Typer(help="Add sections to a site, without a restart.", no_args_is_help=True)

NameArgument = Annotated[str, typer.Argument(help="name of the site: [a-z0-9-]{1,32}")]


@site.callback()
@section.callback()
def _group() -> None:
    """Keep the group where it has one command."""


@site.command()
@examples(
    "sitemapd site add shop https://shop.example.com",
    "sitemapd site add shop https://shop.example.com --web-root /srv/shop",
)
def add(
    name: NameArgument,
    url: Annotated[str, typer.Argument(help="base URL of its pages, e.g. https://example.com/")],
    web_root: Annotated[
        str,
        typer.Option(
            "--web-root", metavar="DIR",
            help="directory for its files; default: public-NAME beside that of the first site",
        ),
    ] = "",
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:  # fmt: skip
    """Add a site with new credentials to the configuration."""
    target = ConfigTarget(home)
    edit = changes.add_site(target.file, name, url, web_root=web_root).edit
    added = edit.after.sites[name]
    page = added.base.url("hello-world")
    target.finish(
        edit, "site add", name, "", as_json=as_json,
        next_step=send_line(target.home, page, name),
        further={"web_root": str(added.web_root)},
    )  # fmt: skip


@site.command("list")
@examples("sitemapd site list", "sitemapd site list --json")
def list_(home: HomeOption = None, as_json: JsonOption = False) -> None:
    """List the sites of the configuration."""
    sites = find_any(home).settings.sites
    if as_json:
        answer(
            [
                {
                    "site": name, "base_url": one.base_url, "web_root": str(one.web_root),
                    "sections": sorted(one.limits),
                }
                for name, one in sites.items()
            ],
            as_json=True,
        )  # fmt: skip
        return
    head = [("SITE", "BASE URL", "WEB ROOT", "SECTIONS")]
    columns([
        *head,
        *(
            (name, one.base_url, str(one.web_root), ", ".join(sorted(one.limits)))
            for name, one in sites.items()
        ),
    ])  # fmt: skip


@site.command()
@examples("sitemapd site remove shop", "sitemapd site remove shop --delete-files --yes")
def remove(
    name: NameArgument,
    delete_files: Annotated[
        bool,
        typer.Option("--delete-files", help="delete its published files, too; robots.txt stays"),
    ] = False,
    yes: YesOption = False,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Remove a site from the configuration. Accepted events are published first; its state in Redis
    stays, and its files unless --delete-files is given.
    """
    target = ConfigTarget(home)
    sites = find_any(home).settings.sites
    if name not in sites:
        detail = f"is not configured; there are: {few(sites)}"
        raise InvalidError(Fault(name, "config", detail))
    removed = sites[name]
    files = f"deletes its files in {removed.web_root}" if delete_files else "keeps its files"
    ask(f"Remove the site {name} ({removed.base_url}); this {files}. Go on?", yes=yes)
    edit = changes.remove_site(target.file, name)
    gone: list[str] = []
    if delete_files:
        with target.client(edit) as client:
            gone = _delete_files(client, name, removed)
    further = {"files_deleted": gone} if as_json else {}
    again = f"sitemapd site add {name} {removed.base_url} --web-root {removed.web_root}"
    target.finish(
        edit, "site remove", name, "", as_json=as_json, further=further,
        next_step=f"to bring it back with its pages: {again}",
    )  # fmt: skip
    if delete_files and not as_json:
        line(f"{len(gone)} files deleted in {removed.web_root}")


def _delete_files(client: redis.Redis, name: str, removed: Site) -> list[str]:
    """Delete the files of a removed site once no worker works on it; say why if they stay."""
    from shared.store.operations.worker_registry import WorkerRegistry
    from worker.publishing.removal import remove_files

    note("waiting until what was accepted is published and the workers leave the site")
    deadline = time.monotonic() + LEAVE_S
    try:
        while any(
            each.alive and (each.beat is None or name in each.beat.sites)
            for each in WorkerRegistry(client).list()
        ):
            if time.monotonic() > deadline:
                note(f"files not deleted: a worker still works on {name}", style="red")
                return []
            time.sleep(0.2)
        return remove_files(client, name, removed)
    except SitemapdError as error:
        note(f"files not deleted: {error}", style="red")
        return []


@section.command("add")
@examples(
    "sitemapd section add shop posts --split month",
    "sitemapd section add shop news --news",
)
def add_section(
    name: Annotated[str, typer.Argument(metavar="SITE", help="site that gets the section")],
    section_name: Annotated[str, typer.Argument(metavar="NAME", help="name of the section")],
    split: Annotated[
        str, typer.Option("--split", help="month or language: files of their own for each")
    ] = "",
    news: Annotated[bool, typer.Option("--news", help="a section for Google News")] = False,
    path: Annotated[
        list[str] | None, typer.Option("--path", help="pattern of its pages' paths, e.g. '/blog/*'")
    ] = None,
    language: Annotated[
        list[str] | None, typer.Option("--language", help="language of its pages, e.g. de")
    ] = None,
    home: HomeOption = None,
    as_json: JsonOption = False,
) -> None:
    """Add a section, a family of pages with files of its own, to a site."""
    if split not in {"", "month", "language"}:
        raise typer.BadParameter(f"{split} is neither month nor language", param_hint="--split")
    chosen: Split = "month" if split == "month" else "language" if split == "language" else ""
    values = section_values(
        split=chosen, news=news, paths=tuple(path or ()), languages=tuple(language or ())
    )
    target = ConfigTarget(home)
    edit = changes.add_section(target.file, name, section_name, values)
    page = edit.after.sites[name].base.url("hello-world")
    target.finish(
        edit, "section add", name, section_name, as_json=as_json,
        next_step=send_line(target.home, page, name, "--section", section_name),
    )  # fmt: skip
