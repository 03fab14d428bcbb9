"""Repairs take no notification from a change that waits to be published."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import redis

from shared.domain.translation_groups import GroupMember, digest_of
from tests.integration.notified import TABLES, Desk
from tests.integration.rig import BASE

DE = f"{BASE}de"


def page(code: str, **members: Any) -> dict[str, Any]:
    return {"type": "upsert", "loc": code, "group": "g", "lang": [code]} | members


def test_engines_are_told_of_a_change_whose_group_is_repaired_before_its_publish(
    store: redis.Redis, tmp_path: Path
) -> None:
    desk = Desk(store, tmp_path / "public", {"crawler": TABLES["crawler"]("http://127.0.0.1:9")})
    rig = desk.rig
    desk.change(page("de"), page("en"))
    rig.send(page("de", lastmod="2026-11-01"))
    rig.pump().apply_all()
    other = GroupMember(1, ("pt",)).pack()
    store.hset(rig.keys.cluster(digest_of("g")), f"{BASE}en", other)

    rig.audit().rebuild()

    assert store.zrange(rig.keys.notify("crawler"), 0, -1) == [DE.encode()]
    assert b'hreflang="pt"' in b"".join(rig.shard_files().values())
