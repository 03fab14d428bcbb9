"""Page of published files: their fill, age and revisions, and the action that rolls one back."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any

from flask import abort
from werkzeug.datastructures import MultiDict

from shared.admin.files import FileActions, FileRow
from shared.admin.outcomes import is_id
from shared.admin.rollback import Rollback, summary
from shared.errors import Fault, InvalidError
from shared.sitemap.shards import Shard
from shared.store.operations.checks import CheckStore
from shared.store.publishing.revisions import Revision, Revisions
from webhook.console import check_results, form_fields
from webhook.console.diff import marked
from webhook.console.page_registry import ActionDone, PageRegistry, Shown, asked_for

ROWS = 50
REVISIONS = 20
LINES = 40
SOME = 5
ON_FILES = {"served", "served-type", "served-validators", "missing-file", "different-file"}
"""The checks (worker/checks/catalog.py) whose samples are files."""

_GRADES = {"current": "good", "dirty": "busy", "held": "warn", "gone": "quiet"}


def install(frame: PageRegistry) -> None:
    """Register the page Files, its pages for a file and a revision, and the action `files
    rollback`.
    """

    def show() -> Shown:
        name = frame.site()
        if file := asked_for("file"):
            return _file(frame, name, file)
        files = _files(frame, name)
        sections, section = files.sections(), asked_for("section")
        if section and section not in sections:
            abort(404, f"There is no section {section[:80]!r} in this site.")
        rows = files.rows([section] if section else sections)
        at = min(_number(asked_for("page")), max(len(rows) - 1, 0) // ROWS)
        more = {"site": name} | ({"section": section} if section else {})
        shown = rows[at * ROWS : (at + 1) * ROWS]
        values = {
            **_served(frame, name, shown),
            "name": name, "sections": sections, "section": section, "count": len(rows),
            "urls": sum(row.urls for row in rows), "grades": _GRADES,
            "rows": shown,
            "newer": frame.address("Files", **more, page=str(at - 1)) if at else "",
            "older": frame.address("Files", **more, page=str(at + 1))
            if len(rows) > (at + 1) * ROWS else "",
        }  # fmt: skip
        return Shown("files.html", values)

    def roll(form: MultiDict[str, str]) -> ActionDone:
        name = form_fields.site_of(frame.services, form)
        file, to = form.get("subject", ""), form.get("to", "")
        shard, rolling = _files(frame, name).shard(file), _rollback(frame, name)
        plan = rolling.plan(shard, to)
        if summary(plan) != form.get("shown"):
            detail = f"the outcome has changed to {summary(plan)}: reload the page"
            raise InvalidError(Fault(file, "revision", detail))
        done = rolling.execute(shard, to, plan)
        return ActionDone(
            done.said, name, done.subject, back=frame.address("Files", site=name, file=file)
        )

    frame.page("Files", "/files", show, per_site=True)
    frame.action("files rollback", "/files/rollback", roll)


def _file(frame: PageRegistry, name: str, file: str) -> Shown:
    """Return the page of one file, of one of its revisions, or of a planned rollback."""
    files = _files(frame, name)
    try:
        shard = files.shard(file)
        row = next(row for row in files.rows([shard.section]) if row.shard == shard)
        values: dict[str, Any] = {"name": name, "row": row, "grade": _GRADES[row.state]}
        if at := asked_for("at"):
            return Shown("revision.html", values | _revision(frame, name, shard, at))
        if to := asked_for("back"):
            return Shown("rollback.html", values | _plan(frame, name, shard, to))
    except InvalidError as error:
        abort(404, str(error))
    asked = asked_for("before")
    before = asked if is_id(asked) else ""
    revisions = Revisions(frame.services.client, name).latest(shard, before)
    found = list(islice(revisions, REVISIONS + 1))
    more = {"site": name, "file": row.file}
    values |= _served(frame, name, [row]) | {
        "content": files.content(shard), "revisions": found[:REVISIONS],
        "newer": frame.address("Files", **more) if asked_for("before") else "",
        "older": frame.address("Files", **more, before=found[REVISIONS - 1].at)
        if len(found) > REVISIONS else "",
    }  # fmt: skip
    return Shown("file.html", values)


def _served(frame: PageRegistry, name: str, rows: Sequence[FileRow]) -> dict[str, Any]:
    """Return whether files are served as published, according to the last check."""
    checks = CheckStore(frame.services.client, name)
    report = checks.latest()
    found = check_results.served(report, checks.seen(), rows)
    return {"served": found, "asked": report.ended_ms / 1000 if report and found else None}


def _revision(frame: PageRegistry, name: str, shard: Shard, at: str) -> dict[str, Any]:
    """Return the values of the page of a revision: some of its lines before and after."""
    revision = _kept(frame, name, shard, at)
    lines = revision.lines or ()
    first = min(_number(asked_for("line")), max(len(lines) - 1, 0) // LINES * LINES)
    more = {"site": name, "file": str(shard), "at": at}
    return {
        "revision": revision, "first": first,
        "lines": [(line.loc, *marked(*line)) for line in lines[first : first + LINES]],
        "newer": frame.address("Files", **more, line=str(max(0, first - LINES))) if first else "",
        "older": frame.address("Files", **more, line=str(first + LINES))
        if len(lines) > first + LINES else "",
    }  # fmt: skip


def _plan(frame: PageRegistry, name: str, shard: Shard, to: str) -> dict[str, Any]:
    """Return the values of the page of a planned rollback."""
    revision = _kept(frame, name, shard, to)
    try:
        plan = _rollback(frame, name).plan(shard, to)
    except InvalidError as error:
        return {"revision": revision, "refused": str(error)}
    notes = [*plan.left.items(), *plan.noted.items()]
    return {
        "revision": revision, "refused": "", "summary": summary(plan), "events": len(plan.events),
        "notes": [(why, len(locs), locs[:SOME]) for why, locs in notes],
        "parts": [
            (what, len(events), [event.loc for event in events[:SOME]])
            for what, events in (
                ("back", plan.back), ("changed", plan.changed), ("gone", plan.gone),
            )
        ],
    }  # fmt: skip


def _kept(frame: PageRegistry, name: str, shard: Shard, at: str) -> Revision:
    """Return the revision of `shard` at `at`. Raises InvalidError if it is not kept."""
    found = Revisions(frame.services.client, name).get(at) if is_id(at) else []
    if not found or found[0].shard != shard:
        raise InvalidError(Fault(at[:40], "revision", "is not kept for this file"))
    return found[0]


def _number(text: str) -> int:
    """Return the number of a page or a line; 0 for anything else."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 9 else 0


def _checks(frame: PageRegistry, name: str) -> CheckStore:
    return CheckStore(frame.services.client, name)


def _files(frame: PageRegistry, name: str) -> FileActions:
    return FileActions(frame.services.client, name, frame.services.sites[name])


def _rollback(frame: PageRegistry, name: str) -> Rollback:
    return Rollback(frame.services.client, name, frame.services.sites[name])
