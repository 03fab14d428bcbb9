"""Page of checks: findings of the last check with their remedies, and the action that asks for
another.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from flask import g
from werkzeug.datastructures import MultiDict

from shared.admin import page_looks
from shared.config.sites.site import Site
from shared.errors import UrlError
from shared.sitemap import urls
from shared.store.operations.checks import (
    ERROR,
    OK,
    CheckFinding,
    CheckStore,
    ComparisonSummary,
    FindingSample,
)
from webhook.console.page_registry import ActionDone, PageRegistry, Shown
from webhook.console.presentation import check_results, form_fields

SOME = 5
"""Samples that are shown at once; the others are folded."""

_DOING = {
    "robots.txt": "checks pages against robots.txt",
    "pages": "checks every page",
    "state": "checks the consistency of the state",
    "files": "compares the files of the web root",
    "served": "fetches files as crawlers do",
}
"""Texts for `Progress.what`."""

_DIFFERING = {
    "missing": "In the source, but not listed.",
    "stale": "Listed with content that differs from the source.",
    "extra": "Listed, but not in the source.",
}


class FindingRow(NamedTuple):
    """A page or file in a finding: its name, the fault, the address that shows it."""

    where: str
    detail: str
    href: str


def install(registry: PageRegistry) -> None:
    """Register the page Checks, and the action `check`."""
    services = registry.services

    def show() -> Shown:
        name = registry.site()
        site, checks = services.sites[name], CheckStore(services.client, name)
        report, compared = checks.last()
        findings, running, asked = check_results.of_check(report), checks.progress(), checks.asked()
        values: dict[str, Any] = {
            "name": name, "report": report, "hours": services.settings.checks_hours,
            "summary": check_results.summary(findings),
            "grade": check_results.GRADES[findings[0].severity] if findings else "",
            "cards": [_card(registry, name, each) for each in findings if each.severity != OK],
            "right": check_results.wrong(findings, OK), "running": running,
            "doing": _DOING.get(running.what, running.what) if running else "",
            "asked": [
                (who, at / 1000) for who, at in asked.items()
                if running is None or at > running.began_ms
            ],
            "idle": bool(asked) and not running and services.idle(),
            "compared": compared, "differing": _differing(registry, name, compared),
            "looks": page_looks.report(services.client, name, site),
            "looked_most": page_looks.SHOWN, "commands": _commands(name, site),
        }  # fmt: skip
        return Shown("checks.html", values)

    def ask(form: MultiDict[str, str]) -> ActionDone:
        name = form_fields.site_of(services, form)
        CheckStore(services.client, name).ask(g.user)
        said = "no worker is alive" if services.idle() else "a worker starts it within seconds"
        return ActionDone(
            f"requested a check: {said}", name, back=registry.address("Checks", site=name)
        )

    registry.page("Checks", "/checks", show, per_site=True, live=True)
    registry.action("check", "/checks/now", ask)


def _card(registry: PageRegistry, name: str, finding: CheckFinding) -> dict[str, Any]:
    """Return the values of one finding."""
    ours = finding.check != "extra-file"  # no page of the console shows foreign files
    samples = [
        _found(registry, name, each) if ours else FindingRow(*each, "") for each in finding.samples
    ]
    commands = [_filled(line, registry, name, finding.samples) for line in finding.commands]
    return {
        "check": finding.check, "title": finding.check.replace("-", " ").capitalize(),
        "grade": check_results.GRADES[finding.severity], "severity": finding.severity,
        "found": finding.found, "means": finding.means, "todo": check_results.pieces(finding),
        "commands": list(dict.fromkeys(commands)),
        "samples": samples[:SOME], "others": samples[SOME:],
        "unnamed": max(0, finding.found - len(samples)) if samples else 0,
    }  # fmt: skip


def _filled(
    line: str, registry: PageRegistry, name: str, samples: Sequence[FindingSample]
) -> tuple[str, ...]:
    """Return a command of a finding, filled in for this site and its first sample."""
    sourced = bool(registry.services.sites[name].source.get_secret_value())
    words = {"SOURCE": "configured"} if sourced else {}
    if samples and "://" in samples[0].where:
        words["URL"] = samples[0].where
    filled = tuple(words.get(word, word) for word in line.split())
    return filled if filled[0] != "sitemapd" else (*filled, "--site", name)


def _found(registry: PageRegistry, name: str, sample: FindingSample) -> FindingRow:
    """Return a sample with the address of the page that shows it, empty if there is none."""
    site = registry.services.sites[name]
    if file := check_results.file_of(site, sample.where):
        return FindingRow(*sample, registry.address("Files", site=name, file=file))
    try:
        urls.canonical(sample.where, site.base)
    except UrlError:
        return FindingRow(*sample, "")
    return FindingRow(*sample, registry.address("Page inspector", site=name, loc=sample.where))


def _differing(
    registry: PageRegistry, name: str, compared: ComparisonSummary | None
) -> list[dict[str, Any]]:
    """Return the values of each kind of difference that a comparison found, with samples."""
    rows = []
    for what, count in compared.differing() if compared else ():
        named: Iterable[FindingSample] = compared.samples.get(what, ()) if compared else ()
        samples = [_found(registry, name, each) for each in named]
        rows.append(
            {
                "check": what, "title": what.capitalize(), "grade": check_results.GRADES[ERROR],
                "found": count, "means": _DIFFERING[what], "samples": samples[:SOME],
                "others": samples[SOME:], "unnamed": max(0, count - len(samples)),
            }
        )  # fmt: skip
    return rows


def _commands(name: str, site: Site) -> Mapping[str, Sequence[str]]:
    against = "configured" if site.source.get_secret_value() else "SOURCE"
    return {
        "check": ("sitemapd", "check", "--site", name),
        "verify": ("sitemapd", "verify", "--against", against, "--site", name),
        "pages": ("sitemapd", "check", "--pages", "--site", name),
        "reconcile": ("sitemapd", "reconcile", "--against", against, "--site", name),
    }
