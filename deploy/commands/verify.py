"""The commands `verify` and `rebuild`: files against the state, and the state against itself."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

import typer

from deploy.cli.examples import examples
from deploy.cli.long_lists import WholeOption, print_list
from deploy.cli.output import (
    CommandTarget,
    HomeOption,
    JsonOption,
    SiteOption,
    answer,
    find,
    line,
    progress,
)
from deploy.commands.admin import AdoptOption, recorded
from deploy.commands.reconcile import (
    AgainstOption,
    IntoOption,
    KeyOption,
    PrefixOption,
    QueryOption,
    SectionOption,
    known_section,
    scope_of,
    source_of,
    verify_against,
)
from shared.admin.outcomes import counted
from shared.errors import ConfigError, Fault
from shared.store.operations.checks import CheckStore
from shared.store.publishing.shrink_holds import ShrinkHolds
from worker.checks.consistency.examination import Consistency
from worker.checks.consistency.flaws import KINDS
from worker.checks.consistency.repair import Repaired
from worker.checks.progress import CheckTally
from worker.checks.verify import Verification


def audit_of(place: CommandTarget) -> Verification:
    """Return the Verification of a site."""
    return Verification(place.client(), place.name, place.site, f"cli-{os.getpid()}")


def report_touched(
    touched: list[str], more: Mapping[str, Any], *, as_json: bool, whole: bool
) -> None:
    """Print the files that were written or removed, the first ones or the `whole` list, and
    `more`.
    """
    if as_json:
        answer({"touched": touched} | dict(more), as_json=True)
        return
    print_list((f"touched  {name}" for name in touched), len(touched), whole=whole)
    if not touched:
        line("no file was written or removed")
    answer(more, as_json=False)


@examples(
    "sitemapd verify",
    "sitemapd verify --against sitemap:https://www.example.com/sitemap.xml --all",
)
def verify(
    against: AgainstOption = None,
    section: SectionOption = None,
    prefix: PrefixOption = None,
    into: IntoOption = None,
    query: QueryOption = "",
    key: KeyOption = "",
    whole: WholeOption = False,
    home: HomeOption = None,
    site: SiteOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compare every published file with the state, byte for byte. Exit code 1 on a difference.

    With --against: compare what is listed with a source, page by page. Writes nothing but the
    result, for `sitemapd check`.
    """
    place = find(home, site)
    scope = scope_of(place, section, prefix)
    if against is not None:
        if into is not None:
            known_section(place, "--into", into)
        source = source_of(place, against, key, query)
        equal = verify_against(place, source, scope, into, as_json=as_json, whole=whole)
        raise typer.Exit(0 if equal else 1)
    if not scope.whole or into or query:
        raise ConfigError(Fault("--against", "config", "the other options need --against"))
    audit = audit_of(place)
    total = audit.files()
    with progress("comparing", total, quiet=as_json) as seen:
        differences = list(audit.verify(seen))
        flaws = _disagreements(place, seen)
    if as_json:
        found = [difference._asdict() for difference in differences]
        equal = not found and not flaws
        about = {"equal": equal, "files": total, "differences": found, "state": flaws}
        answer(about, as_json=True)
    elif differences or flaws:
        named = (f"{each.what:10} {each.name}" for each in differences)
        print_list(named, len(differences), whole=whole)
        for flaw in flaws:
            _report_flaw(flaw)
    else:
        line(f"equal: {counted(total, 'file')}; the state is consistent")
    raise typer.Exit(1 if differences or flaws else 0)


def _disagreements(place: CommandTarget, seen: Callable[[int], None]) -> list[dict[str, Any]]:
    """Return each kind of inconsistency in the state: its count, and samples."""
    tally = CheckTally()
    for flaw in Consistency(place.client(), place.name, place.site).flaws(lambda _: seen(0)):
        tally.add(flaw.kind, flaw.where, flaw.detail)
    return [
        {
            "check": kind, "found": tally.count(kind),
            "samples": [sample._asdict() for sample in tally.samples(kind)],
        }
        for kind in KINDS if tally.count(kind)
    ]  # fmt: skip


def _report_flaw(flaw: Mapping[str, Any]) -> None:
    samples = flaw["samples"]
    for sample in samples:
        said = f"{flaw['check']:10} {sample['where']}  {sample['detail']}"
        line(said)
    if flaw["found"] > len(samples):
        line(f"{flaw['check']:10} and {flaw['found'] - len(samples)} more")


@examples("sitemapd rebuild", "sitemapd rebuild --adopt --site shop")
def rebuild(
    home: HomeOption = None,
    site: SiteOption = None,
    adopt: AdoptOption = False,
    whole: WholeOption = False,
    as_json: JsonOption = False,
) -> None:
    """Repair inconsistencies in the state, then write every file that differs from it beside the
    old one, and swap it in.

    Exit code 1 if the content of some pages is stored nowhere: send these again.
    """
    place = find(home, site)
    audit = audit_of(place)
    with recorded(place.client(), "rebuild", place.name) as said:
        if adopt:
            audit.adopt()
            said("existing files adopted")
        with progress("rebuilding", audit.files(), quiet=as_json) as seen:
            touched = audit.rebuild(seen)
        repaired = audit.repaired
        said(f"{counted(len(touched), 'file')} written or removed")
        if repaired.found:
            CheckStore(place.client(), place.name).ask(
                "sitemapd rebuild"
            )  # the last one is out of date
            said(", ".join(f"{kind} {times}" for kind, times in repaired.found.items()))
    held = [str(shard) for shard in ShrinkHolds(place.client(), place.name).held()]
    more = {"still_held": held} if held else {}
    report_touched(touched, more | _repaired(repaired), as_json=as_json, whole=whole)
    if not as_json:
        _report_lost(repaired, place.name)
    raise typer.Exit(0 if repaired.complete else 1)


def _repaired(repaired: Repaired) -> dict[str, Any]:
    """Return the results of a repair; empty if the state was consistent."""
    about: dict[str, Any] = {"repaired": dict(repaired.found)} if repaired.found else {}
    about |= {name: n for name, n in (("lost", repaired.lost), ("stale", repaired.stale)) if n}
    if repaired.left:
        about["left"] = [f"{flaw.kind} {flaw.where}" for flaw in repaired.left]
    return about


def _report_lost(repaired: Repaired, name: str) -> None:
    """Print what the stored data cannot repair, and the remedy."""
    again = f"sitemapd reconcile --site {name}, or send them again"
    if repaired.lost:
        said = f"{counted(repaired.lost, 'page')} have no stored entry and are not listed: {again}"
        line(said)
    if repaired.stale:
        said = (
            f"{counted(repaired.stale, 'page')} are listed with the content before their "
            f"last change: {again}"
        )
        line(said)
    if repaired.left:
        line("some flaws could not be repaired: run sitemapd check to list them")
