"""Pages in bulk end as single events do, whatever is known of them and happens meanwhile."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
import redis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shared.events.event import parse
from tests.integration.independent import Published
from tests.integration.logs import silence
from tests.integration.pipeline import NAME, Pipeline
from tests.integration.reconcile.stated_pages import ORIGIN, Members, ndjson, page
from worker.reconcile import importer, statement_spool
from worker.reconcile.importer import ImportProgress


class CutOffError(Exception):
    """The import is killed here."""


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statement_spool, "BATCH", 5)


numbers = st.integers(0, 17)
live = st.one_of(
    st.builds(page, numbers, lastmod=st.sampled_from(("2025-05-05", "2025-06-06"))),
    st.builds(lambda n: page(n) | {"type": "delete"}, numbers),
    st.builds(lambda n, to: page(n) | {"loc": f"{ORIGIN}/moved-{to}"}, numbers, numbers),
    st.builds(page, numbers, group=st.just("g"), lang=st.sampled_from((["de"], ["en"]))),
)
sources = st.lists(
    st.builds(
        page,
        numbers,
        images=st.sampled_from(((), (), [{"loc": f"{ORIGIN}/i.png"}])),
        priority=st.sampled_from((None, "0.3")),
    ),
    max_size=18,
    unique_by=lambda each: each["loc"],
)
kills = st.sampled_from(("", "", "here", "before the mark"))
steps = st.lists(st.tuples(st.lists(live, max_size=3), st.booleans(), kills), max_size=5)
Step = tuple[list[Members], bool, str]


@settings(
    max_examples=40, deadline=None, derandomize=True, database=None,
    suppress_health_check=list(HealthCheck),
)  # fmt: skip
@given(before=st.lists(live, max_size=5), pages=sources, between=steps)
def test_any_mix_of_known_pages_live_events_and_kills_ends_as_single_events_do(
    store: redis.Redis,
    tmp_path_factory: pytest.TempPathFactory,
    before: list[Members],
    pages: list[Members],
    between: list[Step],
) -> None:
    """Between batches events come, some of which wait in the inbox, and the import is killed."""
    found = []
    for bulk in (True, False):
        store.flushall()
        root = tmp_path_factory.mktemp("site") / "public"
        site = Pipeline(store, root, ORIGIN, shard_urls=4)
        site.send({"type": "upsert"} | event for event in before)
        with silence():
            if bulk:
                _import(site, ndjson(root.parent / "p.ndjson", pages), iter(between))
            else:
                _single(site, pages, [event for events, *_ in between for event in events])
        site.drain()
        published = Published(site.root, ORIGIN).all()
        assert len(published) == site.pump.pages.lookup.count()
        claims = {
            (key, name): claim[8:]
            for key in store.keys(f"{{{NAME}}}:id:*")
            for name, claim in store.hgetall(key).items()
        }
        found.append((published, claims))

    assert found[0] == found[1]


def _import(site: Pipeline, source: str, between: Iterator[Step]) -> None:
    sent_before, dies = 0, False
    mark = importer._Mark.add

    def add(*batch: Any) -> None:
        """Record that a batch was listed, unless the import is killed right before."""
        nonlocal dies
        if dies:
            dies = False
            raise CutOffError
        mark(*batch)

    def report(progress: ImportProgress) -> None:
        nonlocal sent_before, dies
        if progress.sent > sent_before and (step := next(between, None)):
            sent_before = progress.sent
            events, applied, killed = step
            _accept(site, events)
            if applied:
                site.pump.apply_all()
            if killed == "here":
                raise CutOffError
            dies = bool(killed)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(importer._Mark, "add", add)
        while True:
            sent_before = 0
            try:
                site.bring(source, report=report)
            except CutOffError:
                continue
            break
    for events, *_ in between:
        _accept(site, events)


def _single(site: Pipeline, pages: list[Members], events: list[Members]) -> None:
    began = time.time_ns() // 1_000_000
    for each in pages:
        stated = {name: value for name, value in each.items() if value}
        _accept(site, [stated | {"version": began}])
    _accept(site, events)


def _accept(site: Pipeline, events: list[Members]) -> None:
    for event in events:
        parsed = parse({"type": "upsert"} | event, site.rules)
        assert site.inbox.accept([parsed]).status == "accepted"
