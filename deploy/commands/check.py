"""The command `check`: examine the listed pages, the files, and what the web server serves."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from deploy.cli.examples import examples
from deploy.cli.output import (
    CommandTarget,
    HomeOption,
    JsonOption,
    SiteOption,
    answer,
    find,
    line,
    progress,
    show,
    table,
)
from shared.store.operations.checks import ERROR, OK, WARNING, CheckReport
from worker.checks.examination import Examination

SHOWN = 5
_GRADES = {"broken": "red", "unsure": "yellow", "odd": "yellow"}
_STYLES = {ERROR: "red", WARNING: "yellow", OK: "green"}


@examples("sitemapd check --no-served --json", "sitemapd check --pages")
def check(
    served: Annotated[
        bool, typer.Option(help="also fetch the newest files from base_url, as crawlers do")
    ] = True,
    pages: Annotated[
        bool, typer.Option("--pages", help="show what looks at the pages found, instead")
    ] = False,
    home: HomeOption = None,
    site: SiteOption = None,
    as_json: JsonOption = False,
) -> None:
    """Check every page and every file: what search engines would refuse, what is missing, what the
    web server serves. Workers run the same check every `checks_hours`. Exit code 1 on an error.

    With --pages nothing is checked now: the pages that are not 200 and indexable are listed, as
    workers found them ([sites.NAME.pages]). Exit code 1 on an alarm.
    """
    place = find(home, site)
    if pages:
        raise typer.Exit(_pages(place, as_json=as_json))
    examination = Examination(
        place.client(), place.name, place.site, f"cli-{os.getpid()}",
        elsewhere=place.settings.inner(place.name),
    )  # fmt: skip
    with progress("checking", examination.pages(), quiet=as_json) as seen:
        report = examination.run(by="sitemapd check", served=served, seen=seen)
    if as_json:
        answer(report.plain(), as_json=True)
    else:
        _report(report)
    raise typer.Exit(1 if report.severity == ERROR else 0)


def _pages(place: CommandTarget, *, as_json: bool) -> int:
    """Show what looks at the pages found; return the exit code."""
    from shared.admin.page_looks import report

    looks = report(place.client(), place.name, place.site)
    if as_json:
        answer({"site": place.name} | looks.plain(), as_json=True)
        return int(bool(looks.alarms))
    if not looks.on:
        line(f"No page is looked at: add a table [sites.{place.name}.pages], which may be empty.")
        return 0
    if looks.found:
        rows = [
            (each.loc, (each.grade, _GRADES[each.grade]), each.why, each.since, str(each.times))
            for each in looks.found
        ]
        show(table(("page", "", "found", "since", "looks"), rows))
        line()
    for alarm in looks.alarms:
        line((alarm, "red"))
    if looks.summary is None:
        line("No page was looked at so far: a worker begins within seconds.")
        return 0
    at = looks.summary
    line(
        f"{at.looked:,} pages looked at in the sample, {at.failed:,} of them broken; "
        f"{at.broken:,} named above, {at.unlisted:,} unlisted; {at.spent:,} requests today"
    )
    return int(bool(looks.alarms))


def _report(report: CheckReport) -> None:
    rows = [
        (each.check, (each.severity, _STYLES[each.severity]), str(each.found))
        for each in report.findings
    ]
    show(table(("check", "", "found"), rows))
    for each in report.findings:
        if each.severity == OK:
            continue
        line()
        line(f"{each.check}: {each.means}")
        for sample in each.samples[:SHOWN]:
            line(f"  {sample.where}  {sample.detail}")
        if each.found > SHOWN:
            line(f"  and {each.found - min(SHOWN, len(each.samples))} more")
        line(each.todo)
    seconds = (report.ended_ms - report.began_ms) / 1000
    line()
    line(f"{report.pages} pages in {seconds:.1f} s")
