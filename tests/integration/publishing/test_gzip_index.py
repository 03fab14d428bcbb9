"""An index that is sitemap.xml.gz (PROTOCOL F9, F12)."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
import redis
from pydantic import ValidationError

from deploy.doctor import root as root_checks
from deploy.doctor.runner import Case
from tests.integration.rig import Rig, restarted
from worker.checks.file_monitor import FileMonitor
from worker.publishing.removal import remove_files

PACKED: dict[str, Any] = {"outputs": {"gzip_index": True}}
OPTIONS: dict[str, Any] = {"shard_urls": 2, "index_shards": 3, "robots": "create"}


def upsert(n: int, **members: Any) -> dict[str, Any]:
    return {"type": "upsert", "loc": f"p/{n}", **members}


@pytest.fixture
def rig(store: redis.Redis, tmp_path: Path) -> Rig:
    """Five files, two indexes."""
    rig = Rig(store, tmp_path / "public", **OPTIONS, **PACKED)
    rig.do(*map(upsert, range(10)))
    return rig


def again(rig: Rig, **options: Any) -> Rig:
    """The same site after a restart with other settings."""
    return restarted(rig, **(OPTIONS | options))


def let_time_pass(rig: Rig) -> None:
    for name in rig.client.zrange(rig.keys.retired, 0, -1):
        rig.client.zadd(rig.keys.retired, {name: time.time() - 1})


def test_the_index_is_packed_and_robots_txt_names_it(rig: Rig) -> None:
    rig.check()

    assert sorted(rig.index()) == ["sitemap-2.xml.gz", "sitemap.xml.gz"]
    assert not [*rig.root.glob("sitemap*.xml")]
    text = (rig.root / "robots.txt").read_text()
    assert f"Sitemap: {rig.site.base.url('sitemap.xml.gz')}\n" in text


def test_an_event_changes_one_index_and_a_no_op_none(rig: Rig) -> None:
    before = rig.files()

    rig.do(upsert(1, lastmod="2026-01-01"))
    after = rig.files()
    rig.do(upsert(1, lastmod="2026-01-01"))

    assert {name for name in after if after[name] != before[name]} == {
        "pages-1.xml",
        "sitemap.xml.gz",
    }
    assert rig.files() == after
    rig.check()


def test_an_index_without_files_is_removed(rig: Rig) -> None:
    rig.do(*({"type": "delete", "loc": f"p/{n}"} for n in range(6, 10)))

    assert [*rig.index()] == ["sitemap.xml.gz"]
    rig.check()


@pytest.mark.parametrize("change", ["edited", "removed", "torn"])
def test_a_packed_index_that_was_changed_by_hand_is_restored(rig: Rig, change: str) -> None:
    file = rig.root / "sitemap.xml.gz"
    before = file.read_bytes()
    if change == "removed":
        file.unlink()
    else:
        file.write_bytes(b"theirs" if change == "edited" else before[:-3])
    monitor = FileMonitor(rig.state, rig.name, rig.site)
    found = [monitor.round().wrong, monitor.round().wrong]

    rig.settle()

    assert [*found[1]] == ["sitemap.xml.gz"]
    assert file.read_bytes() == before
    rig.check()


def test_switched_on_and_off_the_other_index_goes_in_time(rig: Rig) -> None:
    packed = rig.files()["sitemap.xml.gz"].content
    plain = again(rig)

    assert sorted(plain.index()) == [
        "sitemap-2.xml", "sitemap-2.xml.gz", "sitemap.xml", "sitemap.xml.gz",
    ]  # fmt: skip
    assert "xml.gz" not in (rig.root / "robots.txt").read_text()
    let_time_pass(plain)
    again(rig)
    assert sorted(plain.index()) == ["sitemap-2.xml", "sitemap.xml"]
    plain.check()

    back = again(rig, **PACKED)
    let_time_pass(back)
    again(rig, **PACKED)
    assert sorted(back.index()) == ["sitemap-2.xml.gz", "sitemap.xml.gz"]
    assert len(back.files()["sitemap.xml.gz"].content) == len(packed)
    back.check()


def test_a_packed_index_of_others_is_no_stray_file_of_ours(rig: Rig) -> None:
    plain = again(rig)
    let_time_pass(plain)
    again(rig)
    (rig.root / "sitemap.xml.gz").write_bytes(b"\x1f\x8btheirs")

    assert not list(plain.audit().verify())


def test_rebuild_doctor_and_removal_know_the_packed_index(rig: Rig) -> None:
    rig.audit().rebuild()
    rig.check()
    case = Case(rig.settings, rig.name, rig.site, rig.client, "")

    names = root_checks.index_names(case, root_checks.opened(case))
    listed = root_checks.listed(root_checks.opened(case), names[0])

    assert names == ["sitemap.xml.gz", "sitemap-2.xml.gz"]
    assert listed == [rig.site.base.url(f"pages-{n}.xml") for n in (1, 2, 3)]
    assert {"sitemap.xml.gz", "sitemap-2.xml.gz"} <= {*remove_files(rig.client, rig.name, rig.site)}
    assert not rig.files()


@pytest.mark.parametrize(
    "options", [{"form": "encoded"}, {"index": False, "robots": "create"}], ids=str
)
def test_a_packed_index_is_refused_where_it_does_not_fit(
    store: redis.Redis, tmp_path: Path, options: dict[str, Any]
) -> None:
    with pytest.raises(ValidationError, match=r"outputs\.gzip_index"):
        Rig(store, tmp_path, **PACKED, **options)
