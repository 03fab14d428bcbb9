"""The command `doctor`: check the whole installation, with a remedy for each failure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Annotated

import typer

from deploy.cli.addresses import web_address
from deploy.cli.examples import examples
from deploy.cli.homes import find_home
from deploy.cli.output import (
    AllSitesOption,
    HomeOption,
    JsonOption,
    answer,
    find_any,
    line,
)
from deploy.doctor import public, robots, root, store, work
from deploy.doctor.never_started import not_begun
from deploy.doctor.runner import Case, DoctorResult, examine
from shared.config.settings import FILE
from shared.errors import ConfigError
from shared.store.connection import connect
from shared.visible_text import few

TIMEOUT_S = 3.0

_COLOURS = {"ok": "green", "warn": "yellow", "fail": "red", "skip": "dim", "wait": "cyan"}
_CONFIGURATION = ("configuration", "every setting in sitemapd.toml and the environment", "")


@examples("sitemapd doctor", "sitemapd doctor --offline --json")
def doctor(
    home: HomeOption = None,
    site: AllSitesOption = None,
    to: Annotated[
        str,
        typer.Option(
            parser=web_address,
            metavar="URL",
            help="address of the webhook; default: that of base_url",
        ),
    ] = "",
    offline: Annotated[
        bool, typer.Option("--offline", help="skip the checks that fetch from the public address")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Check configuration, Redis, clock, web root, robots.txt, files, workers, and what is served.

    Names a remedy for each failure. Exit code 1 if anything fails; parts that wait for the first
    start or event of a new site are no failure.
    """
    seen = []
    for result in _results(home, site, to, offline=offline):
        seen.append(result)
        if not as_json:
            _print(result)
    count = Counter[str](result.status for result in seen)
    if as_json:
        found = [result._asdict() for result in seen]
        answer({"healthy": not count["fail"], "checks": found}, as_json=True)
    else:
        line(", ".join(f"{count[status]} {status}" for status in _COLOURS))
    raise typer.Exit(1 if count["fail"] else 0)


def _results(
    home: HomeOption, site: AllSitesOption, to: str, *, offline: bool
) -> Iterator[DoctorResult]:
    config = find_home(home) / FILE
    try:
        place = find_any(home, site)
    except ConfigError as error:
        for fault in error.faults:
            yield DoctorResult(*_CONFIGURATION, "fail", str(fault), f"correct it in {config}")
        return
    sites = {name: each for name, each in place.settings.sites.items() if site in {None, name}}
    yield DoctorResult(*_CONFIGURATION, "ok", f"{config}, sites: {few(sites)}", "")
    with connect(place.settings.redis_url, TIMEOUT_S) as client:
        cases = [
            Case(
                place.settings, name, each, client, to,
                not_begun=not_begun(client, place.settings, name, place.home),
            )
            for name, each in sites.items()
        ]  # fmt: skip
        checks = (
            *store.checks(config), *root.CHECKS, *robots.CHECKS,
            *work.CHECKS, *public.CHECKS,
        )  # fmt: skip
        yield from examine(cases, checks, offline=offline)


def _print(result: DoctorResult) -> None:
    colour, site = _COLOURS[result.status], f" [{result.site}]" if result.site else ""
    said = f"{result.check}{site}: {result.detail}"
    line((f"{result.status:4}", colour), f"  {said}")
    if result.todo and result.status != "ok":
        line(f"      -> {result.todo}")
