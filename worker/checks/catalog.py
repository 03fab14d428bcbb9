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


_REBUILD = "Run sitemapd rebuild, or wait: the worker rewrites it by itself (check_interval)."
_REBUILDS = ("sitemapd rebuild",)
_DERIVE = "Run sitemapd rebuild: it derives them again from the stored pages."

_CHECKS = {
    "wrong-host": _Check(
        ERROR,
        "Listed pages are not below base_url: search engines ignore them (PROTOCOL L5, L6).",
        "If base_url is right, import the pages below it and delete these: sitemapd reconcile "
        "--against SOURCE.",
        ("sitemapd reconcile --against SOURCE",),
    ),
    "malformed": _Check(
        ERROR,
        "The stored content of these files is damaged, or was not written by sitemapd.",
        "Restore the Redis data: sitemapd restore FILE; or import the pages again: sitemapd "
        "import.",
        ("sitemapd restore FILE", "sitemapd import"),
    ),
    "future-lastmod": _Check(
        WARNING,
        "Pages have a lastmod in the future, which search engines ignore (PROTOCOL M5).",
        "Check the clocks of this machine and of the sender, then send the pages again: sitemapd "
        "reconcile.",
        ("sitemapd reconcile",),
    ),
    "robots-blocked": _Check(
        ERROR,
        "robots.txt disallows listed pages, or the sitemap itself (PROTOCOL R10).",
        "Remove the rule from robots.txt, or delete the pages: sitemapd event send URL --type "
        "delete.",
        ("sitemapd event send URL --type delete",),
    ),
    "not-named": _Check(
        WARNING,
        "Sites of outputs.hosts are not in sitemap-hosts.xml: the robots.txt of their host does "
        "not name it (PROTOCOL R11).",
        "Add the address to robots_also in the table outputs of these sites, or the line to their "
        "robots.txt; it is looked at again within five minutes.",
    ),
    "stale-news": _Check(
        ERROR,
        "Articles older than 48 hours are still listed as news (PROTOCOL W4).",
        "Check that a worker runs and publishing is not paused (sitemapd status), then: sitemapd "
        "publish.",
        ("sitemapd status", "sitemapd publish"),
    ),
    "overdue": _Check(
        WARNING,
        "News or videos have expired and are still listed (PROTOCOL W4, V6).",
        "Check that a worker runs and its clock is right: sitemapd status.",
        ("sitemapd status",),
    ),
    "news-too-many": _Check(
        ERROR,
        "A news file lists more than 1,000 URLs (PROTOCOL W3).",
        "The section had normal pages before it was configured for news: configure a separate "
        "section for news, then send these pages again.",
    ),
    "one-way": _Check(
        WARNING,
        "Pages name versions in other languages that do not name them: search engines ignore "
        "alternates that are not reciprocal (PROTOCOL H2, H3).",
        "Send the finished set with every version, or name the `group` of each: then the sets are "
        "kept whole.",
        (),
    ),
    "duplicate": _Check(
        ERROR,
        "Pages are listed more than once (PROTOCOL L10).",
        "The state is damaged: restore the Redis data (sitemapd restore FILE), or import the "
        "pages into an empty Redis (sitemapd import).",
        ("sitemapd restore FILE", "sitemapd import"),
    ),
    flaws.LOST_LINE: _Check(
        ERROR,
        "Pages are recorded as listed, but no file has their entry: they are not published, and "
        "an event with the same content does not change that.",
        f"{_DERIVE} It names the pages that must be sent again: sitemapd reconcile.",
        (*_REBUILDS, "sitemapd reconcile"),
    ),
    flaws.UNKNOWN_LINE: _Check(
        ERROR,
        "Published entries belong to pages that are deleted, unknown or recorded in another file:"
        " no event removes them.",
        _DERIVE,
        _REBUILDS,
    ),
    flaws.OTHER_LINE: _Check(
        ERROR,
        "Entries differ from the records of their pages.",
        f"{_DERIVE} The decided content is lost: sitemapd reconcile restores it.",
        (*_REBUILDS, "sitemapd reconcile"),
    ),
    flaws.WRONG_COUNT: _Check(
        ERROR,
        "Counters, index entries or blocks disagree with the listed pages: files may exceed their"
        " limits or stay partly empty.",
        _DERIVE,
        _REBUILDS,
    ),
    flaws.WRONG_FILE: _Check(
        ERROR,
        "The records of published files differ from their stored content, or no index lists them.",
        "Run sitemapd rebuild: it publishes them again.",
        _REBUILDS,
    ),
    flaws.WRONG_CLAIM: _Check(
        ERROR,
        "Ids of the sender and pages disagree: a delete or a move by id would miss its page.",
        _DERIVE,
        _REBUILDS,
    ),
    flaws.NOT_RECIPROCAL: _Check(
        ERROR,
        "Pages of a translation group list different languages: search engines ignore alternates "
        "that are not reciprocal (PROTOCOL H2, H3).",
        _DERIVE,
        _REBUILDS,
    ),
    flaws.NOT_SCHEDULED: _Check(
        WARNING,
        "News or videos would not expire, or tombstones of deleted pages would be kept forever.",
        _DERIVE,
        _REBUILDS,
    ),
    flaws.NOT_QUEUED: _Check(
        ERROR,
        "Pending changes are in no queue, so no publisher would write them.",
        _DERIVE,
        _REBUILDS,
    ),
    flaws.WRONG_FEED: _Check(
        WARNING,
        "The feeds have entries of pages that are not listed, or incomplete entries.",
        _DERIVE,
        _REBUILDS,
    ),
    "missing-file": _Check(
        ERROR,
        "Listed files are missing in the web root.",
        _REBUILD,
        _REBUILDS,
    ),
    "different-file": _Check(
        ERROR,
        "The content of files differs from what was published.",
        _REBUILD,
        _REBUILDS,
    ),
    "extra-file": _Check(
        WARNING,
        "The web root has files with names of sitemapd that no index lists.",
        "Run sitemapd rebuild to remove them; rename files of your own that must stay.",
        _REBUILDS,
    ),
}

_SERVED = {
    "served": _Check(
        ERROR,
        "The web server does not serve the published content.",
        "Compare its document root with web_root, clear its cache, and do not redirect sitemaps: "
        "curl -i URL.",
        ("curl -i URL",),
    ),
    "served-type": _Check(
        WARNING,
        "Files are served with the wrong Content-Type.",
        "Include deploy/nginx/sitemapd-files.conf, or set the types of .xml, .gz and .txt.",
    ),
    "served-validators": _Check(
        WARNING,
        "Crawlers cannot detect that a file has changed.",
        "Configure the web server to send Last-Modified and an ETag of time and size: "
        "deploy/nginx/sitemapd-files.conf.",
    ),
}

_COMPARED = {
    "missing": "Pages of the source are not listed.",
    "stale": "Listed pages differ from the source.",
    "extra": "Listed pages are not in the source.",
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
        means = "Missing pages cannot be detected: the site was never compared with a source."
        command = f"sitemapd verify --against {'configured' if configured else 'SOURCE'}"
        todo = f"Run: {command}." if configured else f"Configure `source`, or run: {command}."
        return [CheckFinding("source", WARNING, 0, (), means, todo, (command,))]
    when = w3c_dates.from_epoch_s(compared.at_ms // 1000)
    said = f"Compared with the source at {when}"
    if compared.incomplete:
        said += "; the source could not be read completely"
    found = [_read(compared, said)] if compared.incomplete else []
    for what, means in _COMPARED.items():
        count = int(getattr(compared, what))
        samples = tuple(FindingSample(*one) for one in compared.samples.get(what, ()))
        if count and compared.repaired:
            found.append(CheckFinding(what, OK, 0, (), f"{means} {said}: {count}, repaired.", ""))
        else:
            severity = ERROR if count else OK
            command = "sitemapd reconcile"
            todo = f"Run {command}; with --against SOURCE if no source is configured."
            found.append(
                CheckFinding(what, severity, count, samples, f"{means} {said}.", todo, (command,))
            )
    return found


def _read(compared: ComparisonSummary, said: str) -> CheckFinding:
    sample = FindingSample("source", compared.incomplete)
    command = "sitemapd verify --against SOURCE"
    todo = f"Correct the source, then run: {command}."
    return CheckFinding("source", WARNING, 1, (sample,), f"{said}.", todo, (command,))
