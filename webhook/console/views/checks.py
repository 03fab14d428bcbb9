"""Is what is listed right: what the last check found, what to do about it; asking for another."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from flask import g
from werkzeug.datastructures import MultiDict

from shared import urls
from shared.errors import UrlError
from shared.sites import Site
from shared.store.checks import ERROR, OK, Checks, Compared, Finding, Sample
from webhook.console import asking, checked
from webhook.console.frame import Done, Frame, Shown

SOME = 5
"""Samples that are shown at once; the others when somebody wants them."""

_DOING = {
    "robots.txt": "asks what robots.txt forbids",
    "pages": "looks at every page",
    "state": "holds the state against itself",
    "files": "compares the files of the web root",
    "served": "fetches files as crawlers do",
}
"""What `Progress.what` means."""

_DIFFERING = {
    "missing": "Of the source, and not listed here.",
    "stale": "Listed with other content than the source states.",
    "extra": "Listed here, and not named by the source.",
}


class Found(NamedTuple):
    """A page or file in a finding: its name, what is the matter, the address that shows it."""

    where: str
    detail: str
    href: str


def install(frame: Frame) -> None:
    """The page Checks, and the action `check`."""
    services = frame.services

    def show() -> Shown:
        name = frame.site()
        site, checks = services.sites[name], Checks(services.client, name)
        report, compared = checks.last()
        findings, running, asked = checked.of_check(report), checks.progress(), checks.asked()
        values: dict[str, Any] = {
            "name": name, "report": report, "hours": services.settings.checks_hours,
            "summary": checked.summary(findings),
            "grade": checked.GRADES[findings[0].severity] if findings else "",
            "cards": [_card(frame, name, each) for each in findings if each.severity != OK],
            "right": checked.wrong(findings, OK), "running": running,
            "doing": _DOING.get(running.what, running.what) if running else "",
            "asked": [
                (who, at / 1000) for who, at in asked.items()
                if running is None or at > running.began_ms
            ],
            "idle": bool(asked) and not running and services.idle(name),
            "compared": compared, "differing": _differing(frame, name, compared),
            "commands": _commands(name, site),
        }  # fmt: skip
        return Shown("checks.html", values)

    def ask(form: MultiDict[str, str]) -> Done:
        name = asking.site_of(services, form)
        Checks(services.client, name).ask(g.user)
        said = "no worker is alive" if services.idle(name) else "a worker begins within seconds"
        return Done(f"asked for a check: {said}", name, back=frame.address("Checks", site=name))

    frame.page("Checks", "/checks", show, per_site=True, live=True)
    frame.action("check", "/checks/now", ask)


def _card(frame: Frame, name: str, finding: Finding) -> dict[str, Any]:
    """One finding on the page."""
    ours = finding.check != "extra-file"  # no page of the console is about a file of others
    samples = [_found(frame, name, each) if ours else Found(*each, "") for each in finding.samples]
    todo = checked.pieces(finding.todo)
    commands = [_filled(piece, frame, name, finding.samples) for piece, runs in todo if runs]
    return {
        "check": finding.check, "title": finding.check.replace("-", " ").capitalize(),
        "grade": checked.GRADES[finding.severity], "severity": finding.severity,
        "found": finding.found, "means": finding.means, "todo": todo,
        "commands": list(dict.fromkeys(commands)),
        "samples": samples[:SOME], "others": samples[SOME:],
        "unnamed": max(0, finding.found - len(samples)) if samples else 0,
    }  # fmt: skip


def _filled(line: str, frame: Frame, name: str, samples: Sequence[Sample]) -> tuple[str, ...]:
    """A command of a finding for this site, and for its first sample."""
    sourced = bool(frame.services.sites[name].source.get_secret_value())
    words = {"SOURCE": "configured"} if sourced else {}
    if samples and "://" in samples[0].where:
        words["URL"] = samples[0].where
    filled = tuple(words.get(word, word) for word in line.split())
    return filled if filled[0] != "sitemapd" else (*filled, "--site", name)


def _found(frame: Frame, name: str, sample: Sample) -> Found:
    """A sample with the address of the page that shows it, empty if there is none."""
    site = frame.services.sites[name]
    if file := checked.file_of(site, sample.where):
        return Found(*sample, frame.address("Files", site=name, file=file))
    try:
        urls.canonical(sample.where, site.base)
    except UrlError:
        return Found(*sample, "")
    return Found(*sample, frame.address("Page inspector", site=name, loc=sample.where))


def _differing(frame: Frame, name: str, compared: Compared | None) -> list[dict[str, Any]]:
    """The kinds of pages that a comparison found, with some of each."""
    rows = []
    for what, count in checked.differing(compared):
        named: Iterable[Sample] = compared.samples.get(what, ()) if compared else ()
        samples = [_found(frame, name, each) for each in named]
        rows.append(
            {
                "check": what, "title": what.capitalize(), "grade": checked.GRADES[ERROR],
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
        "reconcile": ("sitemapd", "reconcile", "--against", against, "--site", name),
    }
