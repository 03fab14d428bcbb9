"""Conditions that checks of a site find: in its files, against its source, at its pages."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from shared.admin.conditions.concern import BAD, Concern, command_line, many
from shared.admin.site_signs import SiteSigns
from shared.clock import span
from shared.store.operations.checks import ERROR, OF_SOURCE


def wrong_checks(signs: SiteSigns) -> list[str]:
    """Return the checks of the last report that found errors, without those of the source."""
    found = signs.report.findings if signs.report else ()
    return [each.check for each in found if each.severity == ERROR and each.check not in OF_SOURCE]


def _checked(signs: SiteSigns) -> Iterator[Concern]:
    report, wrong = signs.report, wrong_checks(signs)
    if report and wrong:
        said = f"Checked {_ago(signs, report.ended_ms)}: {many(len(wrong), 'error')}."
        yield Concern(
            "checked", signs.site, BAD, said, f"{', '.join(wrong)}.", page="checks", label="Checks"
        )


def _compared(signs: SiteSigns) -> Iterator[Concern]:
    if signs.compared and (counts := signs.compared.differing()):
        found = ", ".join(f"{count:,} {what}" for what, count in counts)
        said = f"Compared with the source {_ago(signs, signs.compared.at_ms)}: {found}."
        yield Concern("differs", signs.site, BAD, said, page="checks", label="Checks")


def _looked_at(signs: SiteSigns) -> Iterator[Concern]:
    command = (*command_line(signs.site, "check"), "--pages")
    for said in signs.alarms:
        yield Concern("pages", signs.site, BAD, said, "", command, "checks", "Checks")


def _ago(signs: SiteSigns, at_ms: int) -> str:
    return f"{span(max(0.0, signs.now_s - at_ms / 1000))} ago"


CONDITIONS: tuple[Callable[[SiteSigns], Iterator[Concern]], ...] = (
    _checked, _compared, _looked_at,
)  # fmt: skip
