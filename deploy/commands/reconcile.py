"""The command `reconcile`, and the source diff of `verify --against`."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from typing import Annotated, NamedTuple

import typer

from deploy.cli.continued import continued
from deploy.cli.examples import examples
from deploy.cli.long_lists import print_list
from deploy.cli.output import (
    CommandTarget,
    HomeOption,
    JsonOption,
    SiteOption,
    answer,
    find,
    json_text,
    line,
    progress,
    raw,
)
from deploy.commands.admin import recorded
from deploy.local.inline_worker import InlineWorker
from shared.config.sites.import_source import SHOWN as SHOWN_KINDS
from shared.errors import ConfigError, Fault, UrlError
from shared.events.resync_scope import WHOLE, Scope
from shared.sitemap import urls
from shared.store.inbox.inbox import Inbox
from shared.store.operations.checks import CheckStore
from shared.store.operations.resync_requests import ResyncRequests
from worker.reconcile.diff_spool import EXTRA, MISSING, STALE, DiffSpool, summary
from worker.reconcile.event_mapping import Remark
from worker.reconcile.reconciler import Reconciler, Repairs
from worker.reconcile.source_diff import DiffOutcome, SourceDiff
from worker.sources import Item, SourceOptions, estimate, public, read

KEY_VARIABLE = "SITEMAPD_SOURCE_KEY"
CONFIGURED = "configured"
SHOWN = 10

AgainstOption = Annotated[
    str | None,
    typer.Option(
        "--against",
        help=f"`{CONFIGURED}`, or {SHOWN_KINDS}",
    ),
]
QueryOption = Annotated[
    str,
    typer.Option("--query", help="sql: the SELECT that returns the pages; sanity: the projection"),
]
KeyOption = Annotated[
    str,
    typer.Option(
        "--key", envvar=KEY_VARIABLE, show_envvar=True, help="credentials for the source; set"
        " the variable instead, as other users of this machine can read arguments",
    ),
]  # fmt: skip
SectionOption = Annotated[str | None, typer.Option("--section", help="only pages of this section")]
PrefixOption = Annotated[str | None, typer.Option("--prefix", help="only URLs with this prefix")]
IntoOption = Annotated[
    str | None, typer.Option("--into", help="section of new pages for which the source names none")
]


class SourceArgument(NamedTuple):
    """A source as given on the command line; `shown` is its address without secrets."""

    address: str
    access: SourceOptions
    shown: str

    def items(self) -> Iterator[Item]:
        """Return the pages of the source."""
        return read(self.address, self.access)


def source_of(place: CommandTarget, against: str | None, key: str, query: str) -> SourceArgument:
    """Return the source that `--against` names, or the configured one. Raises ConfigError without
    any.
    """
    site = place.site
    if against not in {None, CONFIGURED}:
        assert against is not None
        return SourceArgument(against, SourceOptions.of(site, key, query), public(against))
    address = site.source.get_secret_value()
    if not address:
        where = f"sites.{place.name}.source"
        raise ConfigError(
            Fault(where, "config", "no source is configured: set `source`, or use --against")
        )
    key, query = key or site.source_key.get_secret_value(), query or site.source_query
    access = SourceOptions.of(site, key, query)
    return SourceArgument(address, access, public(address))


def scope_of(place: CommandTarget, section: str | None, prefix: str | None) -> Scope:
    """Return the scope given by `--section` or `--prefix`. Raises ConfigError if it is invalid."""
    if section is not None and prefix is not None:
        raise ConfigError(Fault("--prefix", "config", "use --section or --prefix, not both"))
    if section is not None:
        return Scope(section=known_section(place, "--section", section))
    if prefix is None:
        return WHOLE
    try:
        return Scope(prefix=urls.canonical(prefix, place.site.base))
    except UrlError as error:
        raise ConfigError(Fault("--prefix", f"PROTOCOL {error.rule}", error.detail)) from None


def known_section(place: CommandTarget, option: str, section: str) -> str:
    """Return `section` if pages may be in it. Raises ConfigError if not."""
    if section not in place.site.rules.sections - place.site.rules.news:
        names = ", ".join(sorted(place.site.rules.sections - place.site.rules.news))
        raise ConfigError(Fault(option, "config", f"not configured; there are: {names}"))
    return section


class ReconcileReport:
    """Messages about a source: the count per rule, and the first SHOWN of them."""

    def __init__(self) -> None:
        self.counts: Counter[tuple[str, str]] = Counter()
        self.first: list[Remark] = []

    def __call__(self, said: Remark) -> None:
        """Add one message."""
        self.counts[said.kind, said.rule] += said.times
        if len(self.first) < SHOWN:
            self.first.append(said)

    def rows(self) -> list[dict[str, object]]:
        """Return the counts, the most frequent rule first."""
        return [
            {"what": kind, "rule": rule, "times": n}
            for (kind, rule), n in self.counts.most_common()
        ]

    def show(self) -> None:
        """Print the first messages."""
        for said in self.first:
            line(f"{said.kind} {said.where}: {said.detail} ({said.rule})")


def verify_against(
    place: CommandTarget, source: SourceArgument, scope: Scope, into: str | None, *,
    as_json: bool, whole: bool = False,
) -> bool:  # fmt: skip
    """Print the pages that are missing, extra or stale, the first or the `whole` list, and then
    the summary; return True if there is none.

    The result of a comparison of the whole site is kept for `sitemapd check`.
    """
    client, report = place.client(), ReconcileReport()
    waiting = Inbox(client, place.name).waiting()
    with DiffSpool() as findings:
        began = ResyncRequests(client, place.name).begin_ms()
        comparison = SourceDiff(client, place.name, place.site, scope, findings, began, into)
        with progress("comparing", estimate(source.address), quiet=as_json) as seen:
            outcome = comparison.run(source.items(), on_remark=report, seen=seen)
        if scope.whole:
            compared = summary(findings, began, outcome.incomplete)
            CheckStore(client, place.name).set_compared(compared)
        counts = {what: findings.count(what) for what in (MISSING, STALE, EXTRA)}
        equal = not any(counts.values()) and not outcome.incomplete
        about = _about(source, scope, outcome, waiting) | counts
        if as_json:
            _print_json({"equal": equal, **about, "said": report.rows()}, findings)
        else:
            with closing(iter(findings)) as pages:
                lines = (f"{found.what:10} {found.loc}" for found in pages)
                print_list(lines, sum(counts.values()), whole=whole)
            answer(about, as_json=False)
            report.show()
    return equal


def _about(
    source: SourceArgument, scope: Scope, outcome: DiffOutcome, waiting: int
) -> dict[str, object]:
    about: dict[str, object] = {
        "source": source.shown, "scope": str(scope),
        "pages_of_the_source": outcome.source_meant, "pages_listed": outcome.listed_meant,
    }  # fmt: skip
    if outcome.incomplete:
        about["incomplete"] = outcome.incomplete
    if waiting:
        about["waiting_events"] = waiting  # accepted, and not part of the comparison
    return about


def _print_json(about: dict[str, object], findings: DiffSpool) -> None:
    """Print one JSON object, its pages written as they are read: there may be millions."""
    raw(json_text(about)[:-1] + ', "pages": [', end="")
    for number, found in enumerate(findings):
        said = {"what": found.what, "loc": found.loc, "why": found.why}
        raw(", " * bool(number) + json_text(said), end="")
    raw("]}")


@examples(
    "sitemapd reconcile",
    "sitemapd reconcile --against wordpress:https://www.example.com --section posts",
)
def reconcile(
    against: AgainstOption = None,
    section: SectionOption = None,
    prefix: PrefixOption = None,
    into: IntoOption = None,
    query: QueryOption = "",
    key: KeyOption = "",
    yes: Annotated[
        bool,
        typer.Option(
            "--yes", help="go ahead even if the source has far fewer pages than are listed"
        ),
    ] = False,
    home: HomeOption = None,
    site: SiteOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make the listed pages equal to a source (default: the site's own): add, change and delete
    pages by ordinary events. An event about a page after the start wins. After an interruption, run
    it again: it does what is left.

    Nothing is deleted if the source could not be read to its end; then, and if other differences
    remain, the exit code is 1.
    """
    place = find(home, site)
    source, scope = source_of(place, against, key, query), scope_of(place, section, prefix)
    if into is not None:
        known_section(place, "--into", into)
    client, report = place.client(), ReconcileReport()
    workers = InlineWorker(client, place)
    reconciler = Reconciler(client, place.name, place.site, f"cli-{os.getpid()}")
    with (
        continued(source.address, source.shown, lambda: "events that were sent stay"),
        recorded(client, "reconcile", place.name, f"{scope} against {source.shown}") as said,
        progress("reconciling", estimate(source.address), quiet=as_json) as seen,
    ):
        done = reconciler.run(
            source.items(), scope, on_remark=report, drain=workers.drain, seen=seen, into=into,
            insist=yes,
        )  # fmt: skip
        said(", ".join(f"{name} {what}" for name, what in done.figures().items()))
    workers.finish()
    about = {"against": source.shown, "scope": str(scope), **done._asdict()}
    if as_json:
        answer(about | {"complete": done.complete, "said": report.rows()}, as_json=True)
    else:
        _report(about, done, report)
    raise typer.Exit(0 if done.complete else 1)


def _report(about: dict[str, object], done: Repairs, report: ReconcileReport) -> None:
    answer({name: value for name, value in about.items() if value != ""}, as_json=False)
    report.show()
    if done.incomplete:
        line("nothing was deleted: the source could not be read completely")
    if done.kept:
        line(
            f"{done.kept} pages differ and were kept: only their sender knows their "
            "translation group"
        )
