"""Catalog of all checks: name, severity, meaning and remedy of each."""

from __future__ import annotations

from typing import NamedTuple

from shared.sitemap import w3c_dates
from shared.store.operations.checks import (
    ERROR,
    OK,
    WARNING,
    CheckFinding,
    ComparisonSummary,
    FindingSample,
)
from worker.checks.consistency import flaws
from worker.checks.progress import CheckTally


class _Check(NamedTuple):
    severity: str
    means: str
    todo: str
    commands: tuple[str, ...] = ()


_REBUILD = "sitemapd rebuild writes it anew; the worker does so by itself, see check_interval."
_REBUILDS = ("sitemapd rebuild",)
_DERIVE = "sitemapd rebuild derives all of it again from what is stored of the pages."

_CHECKS = {
    "wrong-host": _Check(
        ERROR, "Pages are listed that are not below base_url: search engines ignore them"
        " (PROTOCOL L5, L6).",
        "If base_url is right, bring the pages in under it and delete these: sitemapd reconcile"
        " --against SOURCE.", ("sitemapd reconcile --against SOURCE",),
    ),
    "malformed": _Check(
        ERROR, "What is stored of these files is damaged, or no entry that sitemapd writes.",
        "Restore the Redis data: sitemapd restore FILE; or bring the pages in again: sitemapd"
        " import.", ("sitemapd restore FILE", "sitemapd import"),
    ),
    "future-lastmod": _Check(
        WARNING, "Pages have a lastmod in the future, which search engines do not believe"
        " (PROTOCOL M5).",
        "Look at the clocks of this machine and of the sender, then send the pages again: sitemapd"
        " reconcile.", ("sitemapd reconcile",),
    ),
    "robots-blocked": _Check(
        ERROR, "robots.txt forbids pages that are listed, or the sitemap itself (PROTOCOL R10).",
        "Take the rule out of robots.txt, or have the pages deleted: sitemapd event send URL --type"
        " delete.", ("sitemapd event send URL --type delete",),
    ),
    "stale-news": _Check(
        ERROR, "Articles are listed as news for more than 48 hours (PROTOCOL W4).",
        "See that a worker runs and publishing is not paused (sitemapd status), then: sitemapd"
        " publish.", ("sitemapd status", "sitemapd publish"),
    ),
    "overdue": _Check(
        WARNING, "News or videos should have left by now (PROTOCOL W4, V6).",
        "See that a worker runs and its clock is right: sitemapd status.", ("sitemapd status",),
    ),
    "news-too-many": _Check(
        ERROR, "A news file lists more than 1,000 URLs (PROTOCOL W3).",
        "The section held normal pages before it was configured for news: give news a section of"
        " its own, then send these pages again.",
    ),
    "duplicate": _Check(
        ERROR, "Pages are listed in more than one place (PROTOCOL L10).",
        "The state was damaged: restore the Redis data (sitemapd restore FILE), or bring the pages"
        " into an empty one (sitemapd import).", ("sitemapd restore FILE", "sitemapd import"),
    ),
    flaws.LOST_LINE: _Check(
        ERROR, "Pages are recorded as listed and no file has their line: they are not published,"
        " and no event with the same content changes that.",
        f"{_DERIVE} What cannot be found again is named, to be sent again: sitemapd reconcile.",
        (*_REBUILDS, "sitemapd reconcile"),
    ),
    flaws.UNKNOWN_LINE: _Check(
        ERROR, "Lines are published of pages that are deleted, recorded elsewhere or not known: no"
        " event takes these lines out.", _DERIVE, _REBUILDS,
    ),
    flaws.OTHER_LINE: _Check(
        ERROR, "Lines say something else than was decided for their pages.",
        f"{_DERIVE} What was decided is lost: sitemapd reconcile brings it back.",
        (*_REBUILDS, "sitemapd reconcile"),
    ),
    flaws.WRONG_COUNT: _Check(
        ERROR, "Counters, index lines or blocks do not agree with the pages that are listed: files"
        " may be filled beyond their limits or keep free places.", _DERIVE, _REBUILDS,
    ),
    flaws.WRONG_FILE: _Check(
        ERROR, "What is recorded of published files is not what is stored of them, or no index has"
        " their line.", "sitemapd rebuild publishes them anew.", _REBUILDS,
    ),
    flaws.WRONG_CLAIM: _Check(
        ERROR, "Ids of the sender and pages do not agree: a delete or a move by id would miss its"
        " page.", _DERIVE, _REBUILDS,
    ),
    flaws.NOT_RECIPROCAL: _Check(
        ERROR, "Pages of a translation group do not all list the same languages: search engines"
        " ignore what is not returned (PROTOCOL H2, H3).", _DERIVE, _REBUILDS,
    ),
    flaws.NOT_SCHEDULED: _Check(
        WARNING, "News or videos would not leave when they are over, or deleted pages would be"
        " remembered for ever.", _DERIVE, _REBUILDS,
    ),
    flaws.NOT_QUEUED: _Check(
        ERROR, "Changes of files wait and no publisher would take them.", _DERIVE, _REBUILDS,
    ),
    flaws.WRONG_FEED: _Check(
        WARNING, "The feeds have entries of pages that are not listed, or half of an entry.",
        _DERIVE, _REBUILDS,
    ),
    "missing-file": _Check(
        ERROR, "Files that are listed are not in the web root.", _REBUILD, _REBUILDS,
    ),
    "different-file": _Check(
        ERROR, "Files hold something else than was published.", _REBUILD, _REBUILDS,
    ),
    "extra-file": _Check(
        WARNING, "Files that look like ours are in the web root and nothing lists them.",
        "sitemapd rebuild removes them; keep what is yours under another name.", _REBUILDS,
    ),
}  # fmt: skip

_SERVED = {
    "served": _Check(
        ERROR, "The web server does not hand out what was published.",
        "Compare its root with web_root, empty its cache, and let it redirect no sitemap: curl -i"
        " URL.", ("curl -i URL",),
    ),
    "served-type": _Check(
        WARNING, "Files are served as another type than they are.",
        "Include deploy/nginx/sitemapd-files.conf, or set the types of .xml, .gz and .txt.",
    ),
    "served-validators": _Check(
        WARNING, "Crawlers cannot tell that a file has changed.",
        "Let the web server send an ETag of time and size, and Last-Modified:"
        " deploy/nginx/sitemapd-files.conf.",
    ),
}  # fmt: skip

_COMPARED = {
    "missing": "Pages of the source are not listed.",
    "stale": "Pages are listed with other content than the source states.",
    "extra": "Pages are listed that the source does not name.",
}


def findings(tally: CheckTally, *, served: bool) -> list[CheckFinding]:
    """Return the findings of each check, in a fixed order; of served files only if `served`."""
    checks = _CHECKS | (_SERVED if served else {})
    return [
        CheckFinding(
            name, check.severity if tally.count(name) else OK, tally.count(name),
            tally.samples(name), check.means, check.todo, check.commands,
        )
        for name, check in checks.items()
    ]  # fmt: skip


def of_source(compared: ComparisonSummary | None, *, configured: bool) -> list[CheckFinding]:
    """Return the findings of the last comparison with the source; a remedy if there was none."""
    if compared is None:
        means = "Whether pages are missing is not known: they were never compared with a source."
        command = f"sitemapd verify --against {'configured' if configured else 'SOURCE'}"
        todo = f"{command}." if configured else f"Configure `source`, or name one: {command}."
        return [CheckFinding("source", WARNING, 0, (), means, todo, (command,))]
    when = w3c_dates.from_epoch_s(compared.at_ms // 1000)
    said = f"Compared with the source at {when}"
    if compared.incomplete:
        said += ", which could not be read to its end"
    found = [_read(compared, said)] if compared.incomplete else []
    for what, means in _COMPARED.items():
        count = int(getattr(compared, what))
        samples = tuple(FindingSample(*one) for one in compared.samples.get(what, ()))
        if count and compared.repaired:
            found.append(CheckFinding(what, OK, 0, (), f"{means} {said}: {count}, repaired.", ""))
        else:
            severity = ERROR if count else OK
            command = "sitemapd reconcile"
            todo = f"{command} repairs it; --against SOURCE, if none is configured."
            found.append(
                CheckFinding(what, severity, count, samples, f"{means} {said}.", todo, (command,))
            )
    return found


def _read(compared: ComparisonSummary, said: str) -> CheckFinding:
    sample = FindingSample("source", compared.incomplete)
    command = "sitemapd verify --against SOURCE"
    todo = f"Mend the source, then: {command}."
    return CheckFinding("source", WARNING, 1, (sample,), f"{said}.", todo, (command,))
