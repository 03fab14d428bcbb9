"""Results of the last check of a site, in the form that several pages show."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from shared.admin.files import FileRow
from shared.config.sites.site import Site
from shared.domain.routing import family_of
from shared.sitemap import shards
from shared.store.operations.checks import (
    ERROR,
    OF_SOURCE,
    OK,
    WARNING,
    CheckFinding,
    CheckReport,
)
from webhook.console.presentation import template_filters

GRADES = {ERROR: "bad", WARNING: "warn", OK: "good"}

_ON_DISK = {
    "missing-file": "not in the web root",
    "different-file": "different content in the web root",
}
_SERVED = {"served": "bad", "served-type": "warn", "served-validators": "warn"}
_LONGEST = 60
_FILE = re.compile(r"(.+?)(?:-[0-9]+)?\.(?:xml|txt)(?:\.gz)?")


class ServedSummary(NamedTuple):
    """The result of fetching a file, compared with the published one: a grade, and a few words."""

    grade: str
    said: str


def of_check(report: CheckReport | None) -> tuple[CheckFinding, ...]:
    """Return the findings of the check itself, without those of a source diff, the worst first."""
    found = (each for each in report.findings if each.check not in OF_SOURCE) if report else ()
    order = list(GRADES)
    return tuple(sorted(found, key=lambda each: order.index(each.severity)))


def wrong(findings: Iterable[CheckFinding], severity: str) -> list[str]:
    """Return the names of the checks with a finding of this `severity`."""
    return [each.check for each in findings if each.severity == severity]


def summary(findings: Sequence[CheckFinding]) -> str:
    """Return the number of errors and warnings, in a few words."""
    counts = {"error": len(wrong(findings, ERROR)), "warning": len(wrong(findings, WARNING))}
    said = [template_filters.plural(count, what) for what, count in counts.items() if count]
    return ", ".join(said) or "nothing wrong"


def pieces(finding: CheckFinding) -> list[tuple[str, bool]]:
    """Split the remedy into pieces; the flag marks those that are its commands."""
    found, rest = list[tuple[str, bool]](), finding.todo
    for command in finding.commands:
        before, _, rest = rest.partition(command)
        found += [(before, False), (command, True)]
    return [piece for piece in (*found, (rest, False)) if piece[0]]


def file_of(site: Site, where: str) -> str:
    """Return the shard file that a sample names by its name or URL; empty if it names none.

    A page of the site may have a similar URL: only configured sections count.
    """
    name = where.removeprefix(site.base.prefix)
    found = _FILE.fullmatch(name)
    known = site.limits
    return name if found and "/" not in name and family_of(found[1], known) in known else ""


def served(
    report: CheckReport | None, seen: Mapping[str, Sequence[str]], rows: Iterable[FileRow]
) -> dict[str, ServedSummary]:
    """Return, by file name, whether each file of `rows` is served as published, according to the
    check.

    `seen` are the files that the check fetched and found right. Empty if it fetched none.
    """
    if report is None or not report.served:
        return {}
    bad = _named(report)
    found = {}
    for row in rows:
        names = (row.url, row.file, shards.on_disk(row.file, row.form))
        said = next((bad[name] for name in names if name in bad), None)
        if row.lastmod is not None and row.lastmod > report.began_ms // 1000:
            said = ServedSummary("quiet", "written since")
        elif said is None:
            right = row.file in seen
            said = (
                ServedSummary("good", "as published")
                if right
                else ServedSummary("quiet", "not fetched")
            )
        found[row.file] = said
    return found


def _named(report: CheckReport) -> dict[str, ServedSummary]:
    """Return the worst finding about each file that the check names."""
    found: dict[str, ServedSummary] = {}
    for finding in reversed(of_check(report)):
        for sample in finding.samples if finding.severity != OK else ():
            if finding.check in _ON_DISK:
                found[sample.where] = ServedSummary("bad", _ON_DISK[finding.check])
            elif finding.check in _SERVED:
                found[sample.where] = ServedSummary(_SERVED[finding.check], _short(sample.detail))
    return found


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
