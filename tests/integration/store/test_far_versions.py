"""A version far ahead, as older releases stored it, holds its page against nothing (T37)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import redis

from shared.domain.page_record import Claim, digest_of
from shared.events.event_fields import MAX_VERSION
from shared.store.keys import field
from tests.integration.reconcile.reconciled import differences, reconcile, record
from tests.integration.rig import BASE, Rig

FAR = MAX_VERSION << 16
A, B = f"{BASE}a", f"{BASE}b"


@pytest.fixture
def rig(store: redis.Redis, tmp_path: Path) -> Rig:
    """Two pages, one of them with an id, pinned as an older release would have done."""
    rig = Rig(store, tmp_path)
    rig.do({"type": "upsert", "loc": A}, {"type": "upsert", "loc": B, "id": "7"})
    for loc in (A, B):
        page = rig.pages.lookup.find(loc)
        assert page is not None
        digest = digest_of(loc)
        store.hset(rig.keys.loc(digest), field(digest), page._replace(stamp=FAR).pack())
        if page.owner:
            key = rig.keys.id(page.owner)
            store.hset(key, field(page.owner), Claim(FAR, loc).pack())
    return rig


def test_a_comparison_shows_a_pinned_page_and_reconcile_repairs_it(rig: Rig) -> None:
    source = [record("a", lastmod="2026-01-01")]

    assert differences(rig, source) == {("stale", "a"), ("extra", "b")}

    reconcile(rig, source)
    assert rig.listed() == {A: "2026-01-01"}
    assert differences(rig, source) == set()
    rig.check()


@pytest.mark.parametrize(
    "event", [{"type": "delete", "loc": A}, {"type": "delete", "id": "7"}], ids=["loc", "id"]
)
def test_an_ordinary_event_lets_a_pinned_page_go(rig: Rig, event: dict[str, Any]) -> None:
    rig.do(event)

    assert len(rig.listed()) == 1
    rig.check()
