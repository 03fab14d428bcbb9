"""The commands `backup` and `restore`: the state of sites, in one file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import redis
import typer

from deploy.backups.archive import ArchiveHead, Backup, write
from deploy.backups.restore import Restore
from deploy.backups.retention import name_at, newest, prune
from deploy.cli.examples import examples
from deploy.cli.output import (
    AllSitesOption,
    CommandTarget,
    HomeOption,
    JsonOption,
    answer,
    find_any,
    line,
    progress,
)
from deploy.commands.admin import recorded
from deploy.local.embedded_redis import EmbeddedServer
from deploy.local.processes import hold, mark, reap
from deploy.local.up import runs
from shared.errors import BackupError, PublishError, ServerStartError
from shared.store.connection import connect
from shared.store.publishing.publish_work import PublishRun
from worker.publishing.targets.ownership import check_marker, read_marker
from worker.publishing.targets.web_root import WebRoot

TIMEOUT_S = 60.0
"""Seconds. The script that swaps in a site of a million URLs blocks Redis for about 1 s."""

FileArgument = Annotated[
    Path,
    typer.Argument(metavar="FILE", help="path of the backup; a directory: its newest"),
]


@examples("sitemapd backup /backups/sitemapd", "sitemapd backup --check /backups/sitemapd")
def backup(
    file: FileArgument,
    check: Annotated[
        bool, typer.Option("--check", help="only verify FILE and list its contents")
    ] = False,
    keep: Annotated[
        int | None,
        typer.Option(
            "--keep",
            min=1,
            help="FILE is a directory: name the backup by its time, and remove all but the newest",
        ),
    ] = None,
    home: HomeOption = None,
    site: AllSitesOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write the present state of all sites to FILE, without stopping anything.

    The file holds the waiting events. It need not hold the files of the web root, which are written
    from the state, and does not hold sitemapd.toml, because of its secrets.
    """
    if check:
        file = newest(file)
        with progress("verifying", None, quiet=as_json) as seen, closing(Backup(file, seen)) as old:
            _report(file, old.head, as_json=as_json)
        return
    directory = file
    if keep:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        file = directory / name_at(datetime.now(UTC))
    place = find_any(home, site)
    sites = [site] if site else list(place.settings.sites)
    with _store(place) as (client, _), progress("writing", None, quiet=as_json) as seen:
        head = write(client, sites, file, seen)
    if keep:  # only now: the new one is whole
        prune(directory, keep)
    _report(file, head, as_json=as_json)


@examples(
    "sitemapd restore /backups/sitemapd",
    "sitemapd restore /backups/sitemapd --site shop --replace",
)
def restore(
    file: FileArgument,
    replace: Annotated[
        bool, typer.Option("--replace", help="replace the existing state of these sites")
    ] = False,
    home: HomeOption = None,
    site: AllSitesOption = None,
    as_json: JsonOption = False,
) -> None:
    """Restore the state in FILE to the Redis of this home; `sitemapd up` and workers must not run.

    Restores all of a site or nothing; after an interruption run it again, it begins anew.
    """
    place, file = find_any(home, site), newest(file)
    with ExitStack() as held:
        with progress("verifying", None, quiet=as_json) as bar:
            saved = held.enter_context(closing(Backup(file, bar)))
        sites = _sites(saved.head, place, site, file)
        client, alone = held.enter_context(_store(place))
        total = sum(saved.head.sites[name].keys for name in sites)
        seen = held.enter_context(progress("restoring", total, quiet=as_json))
        one = sites[0] if len(sites) == 1 else ""
        with recorded(client, "restore", one, str(file)) as say:
            keys = Restore(client, saved, sites).run(replace=replace, alone=alone, seen=seen)
            say(f"{', '.join(sites)} as of {saved.head.taken}")
    rows = [_row(name, saved.head) | {"keys": keys[name]} for name in sites]
    after = [step for name in sites for step in _steps(place, name, saved.head)]
    said = {"restored": str(file), "taken": saved.head.taken, "sites": rows, "next": after}
    if as_json:
        answer(said, as_json=True)
        return
    answer([{"restored": str(file), "taken": saved.head.taken}, *rows], as_json=False)
    line("next:")
    for step in after:
        line(f"  {step}")


def _report(file: Path, head: ArchiveHead, *, as_json: bool) -> None:
    rows = [_row(name, head) for name in head.sites]
    said = {
        "backup": str(file), "bytes": file.stat().st_size, "taken": head.taken,
        "sitemapd": head.sitemapd, "server": head.server,
    }  # fmt: skip
    if as_json:
        answer(said | {"sites": rows}, as_json=True)
    else:
        answer([said, *rows], as_json=False)


def _row(name: str, head: ArchiveHead) -> dict[str, Any]:
    site = head.sites[name]
    return {
        "site": name, "urls": site.urls, "shards": site.shards, "waiting_events": site.waiting,
        "pending_events": site.pending, "run": site.run, "publishes": site.publishes,
        "keys": site.keys,
    }  # fmt: skip


def _sites(head: ArchiveHead, place: CommandTarget, site: str | None, file: Path) -> list[str]:
    """Return the sites to restore. Raises BackupError if one is not in the file, or not configured
    here.
    """
    if site is not None and site not in head.sites:
        raise BackupError(f"{file} holds no state of {site}; it holds: {', '.join(head.sites)}")
    sites = [site] if site else list(head.sites)
    if unknown := [name for name in sites if name not in place.settings.sites]:
        raise BackupError(
            f"{', '.join(unknown)} is not configured here: add it to sitemapd.toml first, or "
            "choose another with --site"
        )
    return sites


def _steps(place: CommandTarget, name: str, head: ArchiveHead) -> list[str]:
    """Return the steps to take after a restore, in order."""
    saved, rebuild = head.sites[name], f"sitemapd rebuild --site {name}"
    root = place.settings.sites[name].web_root
    if root.exists():
        try:
            with closing(WebRoot(root)) as files:
                if (marker := read_marker(files)) is not None:
                    check_marker(files, marker, PublishRun(saved.run, saved.publishes), name)
        except PublishError:
            rebuild += " --adopt   # the files there belong to another's, or newer"
    else:
        rebuild += "   # writes the files anew"
    return [
        *(["sitemapd up"] if not place.settings.redis_url.startswith("redis") else []),
        rebuild,
        f"sitemapd import --site {name} --from ...   # or send again: changes since {head.taken}",
    ]


@contextmanager
def _store(place: CommandTarget) -> Iterator[tuple[redis.Redis, bool]]:
    """Yield a client of the Redis of `place`, and True if no other process can use that server.

    For a home that is stopped, its embedded server runs within the block, and `sitemapd up` cannot
    start.
    """
    home = place.home.resolve()
    with ExitStack() as held:
        alone = False
        url = place.settings.redis_url
        if url == EmbeddedServer(place.home).url:
            try:
                held.enter_context(hold(home / "lock"))
            except (ServerStartError, PermissionError):
                pass  # `sitemapd up` is running
            else:
                reap(runs(home))
                env = {**os.environ, **mark(f"{runs(home)}#cli", EmbeddedServer.name)}
                server = held.enter_context(EmbeddedServer(home, env=env))
                url, alone = server.url, True
        yield held.enter_context(closing(connect(url, TIMEOUT_S))), alone
