"""Sources of a test's own, compared with and made the truth of a site on a real store."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from shared.scopes import WHOLE, Scope
from tests.integration.logs import silence
from tests.integration.rig import BASE, Rig
from worker.comparing import Comparison
from worker.findings import Findings
from worker.reconciling import Reconciler, Repairs
from worker.sources import Item, Record
from worker.translating import Said


def record(path: str, lastmod: str | None = None, **members: Any) -> Record:
    """What a source says of one page of the site."""
    return Record(BASE + path, f"source#{path}", lastmod, **members)


def differences(rig: Rig, items: Iterable[Item], scope: Scope = WHOLE) -> set[tuple[str, str]]:
    """What is different, and the page, as `verify` says it."""
    with Findings() as findings:
        comparison = Comparison(
            rig.client, rig.name, rig.site, scope, findings, rig.resyncs.begin_ms()
        )
        comparison.run(items, say=lambda _: None)
        return {(found.what, found.loc.removeprefix(BASE)) for found in findings}


def reconcile(
    rig: Rig,
    items: Iterable[Item],
    scope: Scope = WHOLE,
    *,
    insist: bool = False,
    say: Callable[[Said], None] = lambda _: None,
) -> Repairs:
    """Make `items` the truth, and publish it."""
    reconciler = Reconciler(rig.client, rig.name, rig.site, "test")
    done = reconciler.run(items, scope, say=say, drain=rig.settle, insist=insist)
    with silence():
        rig.settle()
    return done
