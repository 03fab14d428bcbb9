"""Pages that are found equal by their records are those of which `decide` would change nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest
import redis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shared.events.resync_scope import WHOLE, Scope
from shared.store.operations.resync_requests import ResyncRequests
from tests.integration.pipeline import NAME, Pipeline
from worker.reconcile.diff_spool import DiffSpool, SourceDifference
from worker.reconcile.equal_pages import EqualPages
from worker.reconcile.source_diff import DiffOutcome, SourceDiff
from worker.sources import read

ORIGIN = "https://www.example.com"
numbers = st.integers(0, 7)


def page(number: int, **members: Any) -> dict[str, Any]:
    stated = {"loc": f"{ORIGIN}/{'blog/' if number % 2 else ''}{number}", **members}
    return {name: value for name, value in stated.items() if value is not None}


members: dict[str, Any] = {
    "lastmod": st.sampled_from((None, "2026-01-01", "2026-01-02")),
    "priority": st.sampled_from((None, None, "0.3")),
    "id": st.sampled_from((None, "a", "b", "c")),
    "section": st.sampled_from((None, "pages", "posts")),
}
grouped = st.builds(page, numbers, group=st.just("g"), lang=st.sampled_from((["de"], ["en"])))
deleted = st.builds(lambda n: page(n) | {"type": "delete"}, numbers)
listed = st.lists(st.builds(page, numbers, **members) | grouped | deleted, max_size=12)
sources = st.lists(
    st.builds(page, numbers, **members), max_size=9, unique_by=lambda each: str(each["loc"])
)
scopes = st.sampled_from((WHOLE, Scope(section="posts"), Scope(prefix=f"{ORIGIN}/blog/")))


@settings(
    max_examples=60, deadline=None, derandomize=True, database=None,
    suppress_health_check=list(HealthCheck),
)  # fmt: skip
@given(before=listed, stated=sources, scope=scopes, as_text=st.booleans())
def test_a_comparison_finds_the_same_with_and_without_them(
    store: redis.Redis,
    tmp_path_factory: pytest.TempPathFactory,
    before: list[dict[str, Any]],
    stated: list[dict[str, Any]],
    scope: Scope,
    *,
    as_text: bool,
) -> None:
    store.flushall()
    home = tmp_path_factory.mktemp("site")
    site = Pipeline(store, home / "public", ORIGIN, sections={"posts": {}})
    site.send({"type": "upsert"} | event for event in before)
    source = home / ("s.txt" if as_text else "s.ndjson")
    lines = (str(each["loc"]) if as_text else json.dumps(each) for each in stated)
    source.write_text("".join(f"{line}\n" for line in lines) or "\n")
    address = f"{'sitemap' if as_text else 'ndjson'}:{source}"
    if as_text and not stated:
        return

    with pytest.MonkeyPatch.context() as patched:
        found = compared(store, site, address, scope)
        patched.setattr(EqualPages, "find", lambda *_: {})
        assert found == compared(store, site, address, scope)


def compared(
    store: redis.Redis, site: Pipeline, source: str, scope: Scope
) -> tuple[DiffOutcome, list[tuple[object, ...]]]:
    began = ResyncRequests(store, NAME).begin_ms()
    with DiffSpool() as spool:
        diff = SourceDiff(store, NAME, site.settings.sites[NAME], scope, spool, began)
        outcome = diff.run(read(source), on_remark=lambda _: None)
        return outcome, [told(each) for each in spool]


def told(found: SourceDifference) -> tuple[object, ...]:
    event = found.event and {**vars(found.event), "version": None}
    return found.what, found.loc, found.why, event
