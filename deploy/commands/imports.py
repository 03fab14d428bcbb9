"""The command `import`: every page of a sitemap, a feed, a list or a CMS, as ordinary events."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from deploy.cli.continued import continued
from deploy.cli.examples import examples
from deploy.cli.output import (
    HomeOption,
    JsonOption,
    SiteOption,
    answer,
    find,
    line,
    progress,
)
from deploy.commands.admin import recorded
from deploy.commands.reconcile import KeyOption, QueryOption
from deploy.local.inline_worker import InlineWorker
from shared.config.sites.import_source import SHOWN as SHOWN_KINDS
from shared.errors import ConfigError, Fault
from worker.reconcile.event_mapping import Remark
from worker.reconcile.importer import Importer, ImportProgress
from worker.sources import SourceOptions, estimate, public, read

SHOWN = 10


@examples(
    "sitemapd import --from sitemap:https://www.example.com/sitemap.xml",
    "sitemapd import --from csv:pages.csv --section products --report refused.ndjson",
)
def import_(
    source: Annotated[
        str,
        typer.Option(
            "--from",
            help=SHOWN_KINDS,
        ),
    ],
    section: Annotated[str | None, typer.Option(help="section for the pages")] = None,
    report: Annotated[
        Path | None, typer.Option(help="file for all refused entries, as NDJSON")
    ] = None,
    notify: Annotated[
        bool, typer.Option("--notify", help="notify search engines of every changed page")
    ] = False,
    query: QueryOption = "",
    key: KeyOption = "",
    home: HomeOption = None,
    site: SiteOption = None,
    as_json: JsonOption = False,
) -> None:
    """Import every page of an existing sitemap, feed, list or CMS, as it is there now.

    Pages that the source does not name stay as they are. After an interruption, run it again: it
    continues where it stopped. Exit code 1 if the source gave no page.
    """
    place = find(home, site)
    if section is not None and section not in place.site.limits:
        known = ", ".join(sorted(place.site.limits))
        raise ConfigError(Fault("--section", "config", f"not configured; there are: {known}"))
    client = place.client()
    importer = Importer(client, place.name, place.site, section, notify=notify)
    workers = InlineWorker(client, place)
    counts: Counter[tuple[str, str]] = Counter()
    first: list[Remark] = []
    now = ImportProgress()
    with (
        continued(source, public(source), lambda: _so_far(now)),
        recorded(client, "import", place.name, public(source)) as record,
        (report or Path(os.devnull)).open("w", encoding="utf-8") as lines,
        progress("importing", estimate(source), quiet=as_json) as seen,
    ):

        def on_remark(said: Remark) -> None:
            counts[said.kind, said.rule] += said.times
            if len(first) < SHOWN:
                first.append(said)
            lines.write(json.dumps(said._asdict()) + "\n")

        def advance(done: ImportProgress) -> None:
            nonlocal now
            seen(done.read - now.read)
            now = done

        done = importer.run(
            source, read(source, SourceOptions.of(place.site, key, query)), on_remark=on_remark,
            report=advance, drain=workers.drain,
        )  # fmt: skip
        record(", ".join(f"{name} {number:,}" for name, number in done._asdict().items()))
    workers.finish()
    rules = [{"what": kind, "rule": rule, "times": n} for (kind, rule), n in counts.most_common()]
    if as_json:
        shown = [said._asdict() for said in first]
        answer(done._asdict() | {"said": rules, "first": shown}, as_json=True)
    else:
        _report(done, rules, first, whole=report is not None)
    raise typer.Exit(0 if done.sent or done.skipped else 1)


def _so_far(now: ImportProgress) -> str:
    sent = now.sent + now.skipped
    return f"{now.read:,} entries were read, {sent:,} pages accepted: these stay, and are published"


def _report(
    done: ImportProgress, rules: list[dict[str, object]], first: list[Remark], *, whole: bool
) -> None:
    answer(done._asdict() | {"said": rules}, as_json=False)
    for said in first:
        line(f"{said.kind} {said.where}: {said.detail} ({said.rule})")
    if not whole and sum(int(str(rule["times"])) for rule in rules) > len(first):
        line("more: use --report FILE to save all of them")
    if not done.sent and not done.skipped:
        line("nothing was imported: the source lists no page")
