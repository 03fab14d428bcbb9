"""Sources of a test's own, compared with and made the truth of a site on a real store."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from shared.events.resync_scope import WHOLE, Scope
from tests.integration.logs import silence
from tests.integration.rig import BASE, Rig
from worker.reconcile.diff_spool import DiffSpool
from worker.reconcile.event_mapping import Remark
from worker.reconcile.reconciler import Reconciler, Repairs
from worker.reconcile.source_diff import SourceDiff
from worker.sources import Item, SourceRecord


def record(path: str, lastmod: str | None = None, **members: Any) -> SourceRecord:
    """What a source says of one page of the site."""
    return SourceRecord(BASE + path, f"source#{path}", lastmod, **members)


def differences(rig: Rig, items: Iterable[Item], scope: Scope = WHOLE) -> set[tuple[str, str]]:
    """What is different, and the page, as `verify` says it."""
    with DiffSpool() as findings:
        comparison = SourceDiff(
            rig.client, rig.name, rig.site, scope, findings, rig.resyncs.begin_ms()
        )
        comparison.run(items, on_remark=lambda _: None)
        return {(found.what, found.loc.removeprefix(BASE)) for found in findings}


def reconcile(
    rig: Rig,
    items: Iterable[Item],
    scope: Scope = WHOLE,
    *,
    insist: bool = False,
    say: Callable[[Remark], None] = lambda _: None,
) -> Repairs:
    """Make `items` the truth, and publish it."""
    reconciler = Reconciler(rig.client, rig.name, rig.site, "test")
    done = reconciler.run(items, scope, on_remark=say, drain=rig.settle, insist=insist)
    with silence():
        rig.settle()
    return done
