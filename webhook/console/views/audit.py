"""Page of the audit log."""

from __future__ import annotations

from webhook.console.page_registry import PageRegistry, Shown, asked_for

ROWS = 50


def install(frame: PageRegistry) -> None:
    """Register the page Audit."""

    def show() -> Shown:
        before = asked_for("before")
        rows = frame.services.audit.read(before, ROWS + 1)
        older = frame.address("Audit", before=rows[ROWS - 1].ident) if len(rows) > ROWS else ""
        newest = frame.address("Audit") if before else ""
        return Shown("audit.html", {"rows": rows[:ROWS], "older": older, "newest": newest})

    frame.page("Audit", "/audit", show, live=True)
