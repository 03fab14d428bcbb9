"""Concern: one condition that holds at a site, in words."""

from __future__ import annotations

from typing import NamedTuple

from shared.admin.outcomes import counted

BAD, WARN = "bad", "warn"


class Concern(NamedTuple):
    """A condition that needs an administrator, of one `kind` (a permanent name) at one `site`.

    `grade` is BAD or WARN; `said` describes it, `todo` is the remedy, `command` its command line;
    `page` is the endpoint of the console page that shows it (empty: none), `label` its link.
    """

    kind: str
    site: str
    grade: str
    said: str
    todo: str = ""
    command: tuple[str, ...] = ()
    page: str = ""
    label: str = ""


def many(number: int, what: str) -> str:
    """Return a number of things, with separators."""
    return f"{number:,} {counted(number, what).partition(' ')[2]}"


def command_line(site: str, name: str) -> tuple[str, ...]:
    """Return the command line of the command `name` at one site."""
    return ("sitemapd", name, "--site", site)
