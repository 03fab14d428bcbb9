"""The command `crawl`: when engines fetched what was published, according to access logs."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from io import BufferedReader
from pathlib import Path
from typing import Annotated, Any

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
from shared.config.filenames import index_name
from shared.crawls import crawlers, dns
from shared.crawls.delays import BOUNDS_S, CrawlDelays, Period, spoken
from shared.crawls.log_files import AccessLog
from shared.errors import DateError, Fault, InvalidError
from shared.sitemap import shards, w3c_dates
from shared.store.operations import crawl_report
from shared.store.publishing.publish_state import PublishState
from shared.store.publishing.publish_times import PublishTimes

STDIN = Path("-")
SHOWN = 50
COLUMNS = ("fetched", "p50", "p95", "last fetch")

Verdicts = Counter[tuple[str, str]]


def _since(text: str) -> int:
    try:
        return w3c_dates.epoch_ms(text)
    except DateError as error:
        raise typer.BadParameter(str(error)) from None


def _file(text: str) -> Path:
    # typer's own check of existence does not accept `-`
    path = Path(text)
    if path != STDIN and (path.is_dir() or not path.exists()):
        why = "is a directory" if path.is_dir() else "does not exist"
        raise typer.BadParameter(f"{text} {why}")
    return path


@examples(
    "sitemapd crawl --log /var/log/nginx/access.log",
    "sitemapd crawl --log access.log --since 2026-11-01 --verify-dns",
)
def crawl(
    log: Annotated[
        list[Path],
        typer.Option("--log", parser=_file, metavar="FILE",
                     help="access log, combined or JSON, plain or gzip; - for standard input"),
    ],
    more: Annotated[
        list[Path] | None,
        typer.Argument(parser=_file, metavar="FILE",
                       help="further logs, so that --log access.log* works"),
    ] = None,
    since: Annotated[
        int | None,
        typer.Option(parser=_since, metavar="DATE",
                     help="count publishes from this time on; default: the first line of the logs"),
    ] = None,
    verify_dns: Annotated[
        bool, typer.Option("--verify-dns", help="verify the identity of crawlers by DNS")
    ] = False,
    home: HomeOption = None,
    site: SiteOption = None,
    as_json: JsonOption = False,
) -> None:  # fmt: skip
    """Report when each engine fetched what was published: index, files, changed pages, robots.txt.

    A fetch is a GET answered 200 or 304. The result is kept for the console.
    """
    place = find(home, site)
    verifier = dns.CrawlerVerifier() if verify_dns else None
    report, crawls = read(place, [*log, *(more or ())], since, verifier, quiet=as_json)
    client = place.client()
    crawl_report.save(client, place.name, report)
    pages = (crawl_report.FetchedPage(*page) for page in crawls.first_fetches())
    crawl_report.save_pages(client, place.name, pages)
    if as_json:
        answer(report, as_json=True)
    else:
        _show(report)
    raise typer.Exit(1 if report["log"]["cut_short"] else 0)


def read(
    place: CommandTarget,
    logs: Sequence[Path],
    since_ms: int | None = None,
    verifier: dns.CrawlerVerifier | None = None,
    *,
    quiet: bool = True,
) -> tuple[dict[str, Any], CrawlDelays]:
    """Return the report about `logs` as JSON values, and the delays that it is about. Raises
    InvalidError if no line can be read.

    `since_ms` is the earliest publish that counts, in ms since 1970.
    """
    client = place.client()
    state = PublishState(client, place.name)
    listed = [
        place.site.base.url(shards.file_name(shard, place.site.form))
        for shard in state.files(state.sections())
    ] + [place.site.base.url(index_name(place.site, 0))]
    published = PublishTimes(client, place.name, place.site)
    crawls = CrawlDelays(place.site.base_url, published, listed, since_ms or 0)
    log, verdicts, cut_short = AccessLog(), Counter[tuple[str, str]](), []
    total = None if STDIN in logs else sum(path.stat().st_size for path in logs)
    with progress("reading", total, quiet=quiet) as advance:
        for path in logs:
            try:
                _take(path, log, crawls, verifier, verdicts, advance)
            except OSError as error:
                cut_short.append(f"{path}: {error}")
    if log.first_ms is None or log.last_ms is None:
        raise InvalidError(Fault(
            "--log", "format",
            f"none of {log.lines} lines is an access log entry in combined or JSON "
            "format with a time zone" + "".join(f"; {each}" for each in cut_short),
        ))  # fmt: skip
    period = Period(log.first_ms if since_ms is None else since_ms, log.last_ms)
    before, after = crawls.outside(period)
    report = {
        "site": place.name,
        "made": w3c_dates.from_epoch_s(int(time.time())),
        "log": {
            "lines": log.lines, "of_engines": log.engines, "broken": log.broken,
            "other_hosts": crawls.other_hosts, "cut_short": cut_short,
        },
        "counted": {
            "from": w3c_dates.from_epoch_s(period.first_ms // 1000),
            "to": w3c_dates.from_epoch_s(period.last_ms // 1000),
            "publishes_before": before, "publishes_after": after,
        },
        "verified_by_dns": verifier is not None,
        "bounds_s": BOUNDS_S,
        "engines": [
            crawls.report(name, period) | _verified(name, verdicts, verifier)
            for name in crawls.engines()
        ],
    }  # fmt: skip
    return report, crawls


def _take(
    path: Path,
    log: AccessLog,
    crawls: CrawlDelays,
    verifier: dns.CrawlerVerifier | None,
    verdicts: Verdicts,
    advance: Callable[[int], None],
) -> None:
    """Read one log. Only fetches that count are verified: each new address costs a DNS lookup."""
    for engine, request in _requests(path, log, advance):
        if crawls.fetched(engine.name, request) is None:
            continue
        verdict = verifier.verdict(engine, request.address) if verifier else dns.CLAIMED
        verdicts[engine.name, verdict] += 1
        if verdict in {dns.GENUINE, dns.CLAIMED}:
            crawls.take(engine.name, request)


def _requests(
    path: Path, log: AccessLog, advance: Callable[[int], None]
) -> Iterator[tuple[crawlers.CrawlerEngine, Any]]:
    if path == STDIN:
        with open(sys.stdin.fileno(), "rb", closefd=False) as file:
            yield from log.read(file)
        return
    with path.open("rb") as file:
        yield from log.read(file, _follow(file, advance))


def _follow(file: BufferedReader, advance: Callable[[int], None]) -> Callable[[], None]:
    """Return a function that reports the bytes read of the file itself, compressed or not."""
    told = 0

    def tell() -> None:
        nonlocal told
        now = file.tell()
        advance(now - told)
        told = now

    return tell


def _verified(
    name: str, verdicts: Verdicts, verifier: dns.CrawlerVerifier | None
) -> dict[str, Any]:
    engine = crawlers.BY_NAME[name]
    if verifier and engine.domains:
        counts = {which: verdicts[name, which] for which in (dns.GENUINE, dns.FAKE, dns.UNANSWERED)}
        return {"verified": "dns", **counts}
    found: dict[str, Any] = {"verified": "user agent"}
    return found | ({"addresses": engine.addresses} if engine.addresses else {})


def _show(report: dict[str, Any]) -> None:
    log, counted = report["log"], report["counted"]
    answer({name: log[name] for name in log if name != "cut_short"} | counted, as_json=False)
    kinds, files = (
        [(each["engine"], row[name], row) for each in report["engines"] for row in each[rows]]
        for rows, name in (("kinds", "kind"), ("shards", "file"))
    )
    for what, rows in (("what", kinds), ("file", files[:SHOWN])):
        if rows:
            show(table(("engine", what, *COLUMNS), (_row(*row) for row in rows)))
    if len(files) > SHOWN:
        line(f"and {len(files) - SHOWN:,} more; --json has all of them")
    if not log["of_engines"]:
        line("no line names a crawler: does the log have user agents (combined format)?")
    _notes(report)


def _row(engine: str, name: str, row: dict[str, Any]) -> tuple[str, ...]:
    fetched = f"{row['fetched']} of {row['published']}"
    p50, p95 = spoken(row["p50_s"]), spoken(row["p95_s"])
    return engine, name, fetched, p50, p95, row["latest"] or "never"


def _notes(report: dict[str, Any]) -> None:
    if before := report["counted"]["publishes_before"]:
        line(
            f"{before} publishes before the first log entry are not counted; --since includes them"
        )
    doubted = [e for e in report["engines"] if e.get("fake") or e.get("unanswered")]
    for each in doubted:
        line(
            f"{each['engine']}: {each['fake']} fetches by others under its name,"
            f" {each['unanswered']} that DNS did not answer; neither count"
        )
    # A resolver that knows only internal names answers that there is no such name, too.
    if doubted and not any(each.get("genuine") for each in report["engines"]):
        line("no crawler could be verified: check that public DNS works on this machine")
    claimed = [e["engine"] for e in report["engines"] if e["verified"] == "user agent"]
    if report["verified_by_dns"] and claimed:
        line(f"by user agent only, because DNS cannot verify them: {', '.join(claimed)}")
    for fault in report["log"]["cut_short"]:
        line(f"not read completely: {fault}")
