"""Page of the audit log."""

from __future__ import annotations

from webhook.console.page_registry import PageRegistry, Shown, query_arg

ROWS = 50


def install(registry: PageRegistry) -> None:
    """Register the page Audit."""

    def show() -> Shown:
        before = query_arg("before")
        rows = registry.services.audit.read(before, ROWS + 1)
        older = registry.address("Audit", before=rows[ROWS - 1].ident) if len(rows) > ROWS else ""
        newest = registry.address("Audit") if before else ""
        return Shown("audit.html", {"rows": rows[:ROWS], "older": older, "newest": newest})

    registry.page("Audit", "/audit", show, live=True)
