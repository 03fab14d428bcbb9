"""Every number and date of an event at its extremes: refused with the remedy, or published right.

RELIABILITY T37. What is accepted goes all the way, through a real store into files that validate.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import redis

from shared.errors import Fault, InvalidError
from tests import feeds as reader
from tests.integration.rig import BASE, Rig

NUMBERS: list[Any] = [
    0, -1, 1, 5, 28_800, 10**17, 10**18, 2**63, 2**64, 10**5_000, -(10**5_000), 0.1 + 0.2, 5e-324,
    1e300, -0.0, float("nan"), float("inf"), True, "1", "1" * 18, "1" * 19, "1" * 5_000, "1e3",
    "-1", "0." + "1" * 16, "0." + "1" * 17, "\u0661", "", " 1",
]  # fmt: skip
DATES: list[Any] = [
    "0001-01-01", "0001-01-01T00:00:00Z", "0001-01-01T00:00:00+14:00", "1969-12-31T23:59:59Z",
    "1970-01-01", "1970-01-01T00:00:00Z", "2000-02-29", "2001-02-29", "2026-11", "2026",
    "9999-12-31", "9999-12-31T23:59:59Z", "9999-12-31T23:59:59-14:00", "10000-01-01",
    "2026-11-21T24:00:00Z", "2026-11-21T10:20:60Z", "2026-11-21T10:20:30." + "9" * 5_000 + "Z",
    "2026-11-21T10:20:30+14:01", 1_795_256_430, 1_795_256_430_000, 10**5_000, -1, 1.5, True, "",
]  # fmt: skip
VIDEO = {
    "thumbnail_loc": f"{BASE}t.png", "content_loc": f"{BASE}v.mp4", "title": "A video",
    "description": "Of something",
}  # fmt: skip
NEWS = {
    "publication": {"name": "The Example", "language": "en"}, "title": "News",
    "publication_date": "2026-11-21",
}  # fmt: skip


def of_video(name: str, value: object) -> dict[str, Any]:
    return {"videos": [VIDEO | {name: value}]}


def of_news(value: object) -> dict[str, Any]:
    return {"news": NEWS | {"publication_date": value}}


EXTREMES = {
    "priority": [{"priority": each} for each in NUMBERS],
    "duration": [of_video("duration", each) for each in NUMBERS],
    "rating": [of_video("rating", each) for each in NUMBERS],
    "view_count": [of_video("view_count", each) for each in NUMBERS],
    # 1 and "1" are one id.
    "id": [{"id": each if type(each) is int else f"a{each}"} for each in NUMBERS],
    "version": [{"version": each} for each in [*NUMBERS, *DATES]],
    "lastmod": [{"lastmod": each} for each in DATES],
    "published": [{"published": each, "section": "months"} for each in DATES],
    "publication_date": [of_news(each) for each in DATES],
    "video publication_date": [of_video("publication_date", each) for each in DATES],
    "expiration_date": [of_video("expiration_date", each) for each in DATES],
}


def refused(rig: Rig, item: dict[str, Any]) -> tuple[Fault, ...]:
    try:
        rig.parse(item)
    except InvalidError as error:
        return error.faults
    return ()


@pytest.mark.parametrize("name", EXTREMES)
def test_a_number_or_date_at_its_extremes_is_refused_or_published(
    name: str, store: redis.Redis, tmp_path: Path
) -> None:
    sections = {"news": {"news": True}, "months": {"split": "month"}}
    rig = Rig(store, tmp_path / "public", feed=True, hints=True, sections=sections)
    accepted = 0
    for number, members in enumerate(EXTREMES[name]):
        item = {"type": "upsert", "loc": f"{BASE}{number}", "title": "A page"} | members
        faults = refused(rig, item)
        assert all(0 < len(fault.detail) < 200 for fault in faults)
        if not faults:
            rig.send(item)
            accepted += 1

    rig.settle()

    assert accepted
    assert len(rig.listed()) == accepted, "all that was accepted is listed, nothing is dead"
    rig.check()
    assert len(reader.atom((rig.root / "atom.xml").read_bytes())) == accepted
    assert len(reader.rss((rig.root / "rss.xml").read_bytes())) == accepted


def test_an_event_of_a_far_version_that_was_accepted_before_does_not_hold_its_page(
    store: redis.Redis, tmp_path: Path
) -> None:
    """It lay in the inbox when such versions were taken: its arrival counts."""
    rig = Rig(store, tmp_path / "public")
    far = rig.parse({"type": "upsert", "loc": f"{BASE}a"})
    vars(far)["version"] = (1 << 47) - 1
    rig.inbox.accept([far])
    rig.settle()
    assert rig.listed()

    rig.do({"type": "delete", "loc": "a"})

    assert not rig.listed()
