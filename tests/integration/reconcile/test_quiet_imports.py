"""Of what search engines are told (PROTOCOL U7): of real changes, of imports if that is asked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import redis

from shared.events.resync_scope import WHOLE
from tests.integration.rig import BASE, Rig
from worker.reconcile.importer import Importer
from worker.reconcile.reconciler import Reconciler
from worker.sources import read

ENGINES = {"indexnow": {"key": "0123456789abcdef"}, "bing": {"key": "0123456789"}}


@pytest.fixture
def rig(store: redis.Redis, tmp_path: Path) -> Rig:
    return Rig(store, tmp_path / "public", notify=ENGINES, shrink_share=1.0)


@pytest.fixture
def source(tmp_path: Path) -> Callable[..., str]:
    def write(*names: str) -> str:
        path = tmp_path / "pages.txt"
        path.write_text("".join(f"{BASE}{name}\n" for name in names))
        return f"sitemap:{path}"

    return write


def told(rig: Rig) -> set[str]:
    """The pages of which both engines are to be told, by their last part."""
    each = [
        {loc.decode().removeprefix(BASE) for loc in rig.client.zrange(rig.keys.notify(name), 0, -1)}
        for name in ENGINES
    ]
    assert each[0] == each[1]
    rig.client.delete(*map(rig.keys.notify, ENGINES))
    return each[0]


def import_(rig: Rig, source: str, *, notify: bool) -> None:
    importer = Importer(rig.client, rig.name, rig.site, None, notify=notify)
    importer.run(
        source, read(source), on_remark=lambda _: None, report=lambda _: None, drain=lambda: None
    )
    rig.settle()


def reconcile(rig: Rig, source: str) -> None:
    reconciler = Reconciler(rig.client, rig.name, rig.site, "test")
    reconciler.run(read(source), WHOLE, on_remark=lambda _: None, drain=lambda: None, insist=True)
    rig.settle()


def test_no_engine_is_told_of_an_import(rig: Rig, source: Callable[..., str]) -> None:
    import_(rig, source("a", "b"), notify=False)

    assert rig.listed().keys() == {f"{BASE}a", f"{BASE}b"}
    assert told(rig) == set()


def test_engines_are_told_of_an_import_when_that_is_asked(
    rig: Rig, source: Callable[..., str]
) -> None:
    import_(rig, source("a", "b"), notify=True)

    assert told(rig) == {"a", "b"}


def test_a_reconcile_tells_of_what_it_repairs_and_of_no_whole_site(
    rig: Rig, source: Callable[..., str]
) -> None:
    reconcile(rig, source("a", "b"))
    assert rig.listed().keys() == {f"{BASE}a", f"{BASE}b"}
    assert told(rig) == set()

    reconcile(rig, source("b", "c"))

    assert rig.listed().keys() == {f"{BASE}b", f"{BASE}c"}
    assert told(rig) == {"a", "c"}


def test_engines_are_told_of_a_move_under_both_addresses(rig: Rig) -> None:
    rig.do({"type": "upsert", "loc": f"{BASE}old", "id": "7"})
    assert told(rig) == {"old"}

    rig.do({"type": "upsert", "loc": f"{BASE}new", "id": "7"})

    assert told(rig) == {"old", "new"}


def test_what_changes_nothing_is_not_told(rig: Rig) -> None:
    page = {"type": "upsert", "loc": f"{BASE}a", "lastmod": "2026-01-01"}
    rig.do(page)
    assert told(rig) == {"a"}

    rig.do(page)

    assert told(rig) == set()


def test_nothing_is_told_before_it_is_published(rig: Rig) -> None:
    rig.send({"type": "upsert", "loc": f"{BASE}a"})
    rig.pump().apply_all()
    assert told(rig) == set()

    rig.settle()

    assert told(rig) == {"a"}


def test_what_an_import_says_of_a_page_after_its_own_event_unsays_nothing(
    rig: Rig,
) -> None:
    rig.send({"type": "upsert", "loc": f"{BASE}a", "lastmod": "2026-01-01"})
    rig.pump().apply_all()
    rig.inbox.accept([rig.parse({"type": "upsert", "loc": f"{BASE}a"})], quiet=True)
    rig.pump().apply_all()

    rig.settle()

    assert told(rig) == {"a"}


def test_what_is_changed_back_before_it_is_published_is_not_told(rig: Rig) -> None:
    rig.do({"type": "upsert", "loc": f"{BASE}a"})
    assert told(rig) == {"a"}
    rig.send({"type": "upsert", "loc": f"{BASE}a", "lastmod": "2026-01-01"})
    rig.pump().apply_all()
    rig.send({"type": "upsert", "loc": f"{BASE}a"}, {"type": "upsert", "loc": f"{BASE}b"})

    rig.settle()

    assert told(rig) == {"b"}
