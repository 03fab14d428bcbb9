"""The command `check`: examine the listed pages, the files, and what the web server serves."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from deploy.cli.examples import examples
from deploy.cli.output import (
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
_STYLES = {ERROR: "red", WARNING: "yellow", OK: "green"}


@examples("sitemapd check", "sitemapd check --no-served --json")
def check(
    served: Annotated[
        bool, typer.Option(help="also fetch the newest files from base_url, as crawlers do")
    ] = True,
    home: HomeOption = None,
    site: SiteOption = None,
    as_json: JsonOption = False,
) -> None:
    """Check every page and every file: what search engines would refuse, what is missing, what the
    web server serves. Workers run the same check every `checks_hours`. Exit code 1 on an error.
    """
    place = find(home, site)
    examination = Examination(place.client(), place.name, place.site, f"cli-{os.getpid()}")
    with progress("checking", examination.pages(), quiet=as_json) as seen:
        report = examination.run(by="sitemapd check", served=served, seen=seen)
    if as_json:
        answer(report.plain(), as_json=True)
    else:
        _report(report)
    raise typer.Exit(1 if report.severity == ERROR else 0)


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
