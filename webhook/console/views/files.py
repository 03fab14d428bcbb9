"""Page of published files: their fill, age and revisions, and the action that rolls one back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

from flask import abort
from werkzeug.datastructures import MultiDict

from shared.admin.files import FileActions, FileRow
from shared.admin.outcomes import is_id
from shared.admin.rollback import Rollback, summary
from shared.admin.rollback_plan import ShownPlan
from shared.errors import Fault, InvalidError
from shared.sitemap.shards import Shard
from shared.store.operations.checks import CheckStore
from shared.store.publishing.revisions import Revision, Revisions
from webhook.console.page_registry import ActionDone, PageRegistry, Shown, query_arg
from webhook.console.presentation import check_results, form_fields
from webhook.console.presentation.diff import marked

ROWS = 50
REVISIONS = 20
LINES = 40
SOME = 5

_GRADES = {"current": "good", "dirty": "busy", "held": "warn", "gone": "quiet"}


def install(registry: PageRegistry) -> None:
    """Register the page Files, its pages for a file and a revision, and the action `files
    rollback`.
    """

    def show() -> Shown:
        name = registry.site()
        if file := query_arg("file"):
            return _file(registry, name, file)
        files = _files(registry, name)
        sections, section = files.sections(), query_arg("section")
        if section and section not in sections:
            abort(404, f"There is no section {section[:80]!r} in this site.")
        rows = files.rows([section] if section else sections)
        at = min(_number(query_arg("page")), max(len(rows) - 1, 0) // ROWS)
        more = {"site": name} | ({"section": section} if section else {})
        shown = rows[at * ROWS : (at + 1) * ROWS]
        values = {
            **_served(registry, name, shown),
            "name": name, "sections": sections, "section": section, "count": len(rows),
            "urls": sum(row.urls for row in rows), "grades": _GRADES,
            "rows": shown,
            "newer": registry.address("Files", **more, page=str(at - 1)) if at else "",
            "older": registry.address("Files", **more, page=str(at + 1))
            if len(rows) > (at + 1) * ROWS else "",
        }  # fmt: skip
        return Shown("files.html", values)

    def roll(form: MultiDict[str, str]) -> ActionDone:
        name = form_fields.site_of(registry.services, form)
        file, to = form.get("subject", ""), form.get("to", "")
        shard, rolling = _files(registry, name).shard(file), _rollback(registry, name)
        plan = rolling.plan(shard, to, _shown(file, form))
        if not plan.events:
            raise InvalidError(Fault(file, "revision", f"nothing is left to do: {summary(plan)}"))
        done = rolling.execute(shard, to, plan)
        return ActionDone(
            done.said, name, done.subject, back=registry.address("Files", site=name, file=file)
        )

    registry.page("Files", "/files", show, per_site=True, live=True)
    registry.action("files rollback", "/files/rollback", roll)


def _file(registry: PageRegistry, name: str, file: str) -> Shown:
    """Return the page of one file, of one of its revisions, or of a planned rollback."""
    files = _files(registry, name)
    try:
        shard = files.shard(file)
        row = next(row for row in files.rows([shard.section]) if row.shard == shard)
        # Its content is inflated: such a page does not ask for itself again and again.
        values: dict[str, Any] = {
            "name": name, "row": row, "grade": _GRADES[row.state], "still": True,
        }  # fmt: skip
        if at := query_arg("at"):
            return Shown("revision.html", values | _revision(registry, name, shard, at))
        if to := query_arg("back"):
            return Shown("rollback.html", values | _plan(registry, name, shard, to))
    except InvalidError as error:
        abort(404, str(error))
    asked = query_arg("before")
    before = asked if is_id(asked) else ""
    revisions = Revisions(registry.services.client, name).latest(shard, before)
    found = list(islice(revisions, REVISIONS + 1))
    more = {"site": name, "file": row.file}
    values |= _served(registry, name, [row]) | {
        "content": files.content(shard), "revisions": found[:REVISIONS],
        "newer": registry.address("Files", **more) if query_arg("before") else "",
        "older": registry.address("Files", **more, before=found[REVISIONS - 1].at)
        if len(found) > REVISIONS else "",
    }  # fmt: skip
    return Shown("file.html", values)


def _served(registry: PageRegistry, name: str, rows: Sequence[FileRow]) -> dict[str, Any]:
    """Return whether files are served as published, according to the last check."""
    checks = CheckStore(registry.services.client, name)
    report = checks.latest()
    found = check_results.served(report, checks.seen(), rows)
    return {"served": found, "asked": report.ended_ms / 1000 if report and found else None}


def _revision(registry: PageRegistry, name: str, shard: Shard, at: str) -> dict[str, Any]:
    """Return the values of the page of a revision: some of its lines before and after."""
    revision = _kept(registry, name, shard, at)
    lines = revision.lines or ()
    first = min(_number(query_arg("line")), max(len(lines) - 1, 0) // LINES * LINES)
    more = {"site": name, "file": str(shard), "at": at}
    return {
        "revision": revision, "first": first,
        "lines": [(line.loc, *marked(*line)) for line in lines[first : first + LINES]],
        "newer": registry.address("Files", **more, line=str(max(0, first - LINES)))
        if first else "",
        "older": registry.address("Files", **more, line=str(first + LINES))
        if len(lines) > first + LINES else "",
    }  # fmt: skip


def _plan(registry: PageRegistry, name: str, shard: Shard, to: str) -> dict[str, Any]:
    """Return the values of the page of a planned rollback."""
    revision = _kept(registry, name, shard, to)
    try:
        plan = _rollback(registry, name).plan(shard, to)
    except InvalidError as error:
        return {"revision": revision, "refused": str(error)}
    notes = [*plan.left.items(), *plan.noted.items()]
    return {
        "revision": revision, "refused": "", "summary": summary(plan), "events": len(plan.events),
        "shown": plan.shown,
        "notes": [(why, len(locs), locs[:SOME]) for why, locs in notes],
        "parts": [
            (what, len(events), [event.loc for event in events[:SOME]])
            for what, events in (
                ("back", plan.back), ("changed", plan.changed), ("gone", plan.gone),
            )
        ],
    }  # fmt: skip


def _shown(file: str, form: Mapping[str, str]) -> ShownPlan:
    """Return what the plan knew that the form shows. Raises InvalidError if it does not say."""
    upto, at = form.get("upto", ""), form.get("at", "")
    if not is_id(upto) or not (at.isascii() and at.isdigit() and len(at) < 16):
        raise InvalidError(Fault(file, "revision", "the form shows no plan: reload the page"))
    return ShownPlan(upto, int(at))


def _kept(registry: PageRegistry, name: str, shard: Shard, at: str) -> Revision:
    """Return the revision of `shard` at `at`. Raises InvalidError if it is not kept."""
    found = Revisions(registry.services.client, name).get(at) if is_id(at) else []
    if not found or found[0].shard != shard:
        raise InvalidError(Fault(at[:40], "revision", "is not kept for this file"))
    return found[0]


def _number(text: str) -> int:
    """Return the number of a page or a line; 0 for anything else."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 9 else 0


def _checks(registry: PageRegistry, name: str) -> CheckStore:
    return CheckStore(registry.services.client, name)


def _files(registry: PageRegistry, name: str) -> FileActions:
    return FileActions(registry.services.client, name, registry.services.sites[name])


def _rollback(registry: PageRegistry, name: str) -> Rollback:
    return Rollback(registry.services.client, name, registry.services.sites[name])
