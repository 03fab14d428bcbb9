"""The change list of a site, on a real store and real files (ANSI/NISO Z39.99)."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import redis
from resync.change_list import ChangeList

from shared.sitemap.change_list import NAMES, LoggedChange
from shared.store.publishing.change_log import ChangeLog
from tests.integration.rig import BASE, Rig, restarted
from worker.checks.file_monitor import FileMonitor
from worker.publishing.outputs.change_list import ChangeListFiles
from worker.publishing.removal import remove_files

ON: dict[str, Any] = {"change_list": True}
OPTIONS: dict[str, Any] = {"shard_urls": 4, "shrink_least": 1_000}


class Listed(NamedTuple):
    kind: str
    path: str


def upsert(path: object, **members: Any) -> dict[str, Any]:
    return {"type": "upsert", "loc": f"{BASE}{path}", **members}


def delete(path: object, **members: Any) -> dict[str, Any]:
    return {"type": "delete", "loc": f"{BASE}{path}", **members}


@pytest.fixture
def rig(store: redis.Redis, tmp_path: Path) -> Rig:
    return Rig(store, tmp_path / "public", outputs=ON, **OPTIONS)


def again(rig: Rig, **options: Any) -> Rig:
    """The same site after a restart with other settings."""
    return restarted(rig, **(OPTIONS | options))


def read(rig: Rig) -> ChangeList:
    found = ChangeList()
    found.parse(fh=io.BytesIO((rig.root / "changelist.xml").read_bytes()))
    return found


def listed(rig: Rig) -> list[Listed]:
    """What an independent reader finds, in order; the site is right besides."""
    rig.check()
    found = read(rig)
    times = [each.ts_datetime for each in found]
    assert times == sorted(times)
    return [Listed(each.change, each.uri.removeprefix(BASE)) for each in found]


def test_each_publish_appends_what_it_created_updated_and_deleted(rig: Rig) -> None:
    rig.do(upsert("a"), upsert("b"))
    rig.do(upsert("a", lastmod="2026-01-01"))
    rig.do(delete("b"))

    found = listed(rig)

    assert {*found[:2]} == {Listed("created", "a"), Listed("created", "b")}
    assert found[2:] == [Listed("updated", "a"), Listed("deleted", "b")]


def test_what_changes_nothing_is_not_listed_and_the_file_stays(rig: Rig) -> None:
    rig.do(upsert("a"))
    before = {name: (rig.root / name).stat().st_mtime_ns for name in NAMES}

    rig.do(upsert("a"), delete("unknown"))

    assert {name: (rig.root / name).stat().st_mtime_ns for name in NAMES} == before
    assert listed(rig) == [Listed("created", "a")]


def test_a_page_that_moves_to_another_file_is_no_change_and_one_that_changes_is_updated(
    rig: Rig,
) -> None:
    rig = again(rig, outputs=ON, sections={"posts": {}})
    rig.do(upsert("a"), upsert("b"))
    rig.do(upsert("a", section="posts"), upsert("b", section="posts", lastmod="2026-01-01"))

    assert listed(rig)[2:] == [Listed("updated", "b")]


def test_a_move_that_two_passes_publish_deletes_nothing(rig: Rig) -> None:
    rig = again(rig, outputs=ON, sections={"posts": {}})
    rig.do(upsert("a"))
    output = ChangeListFiles(rig.client, rig.name, rig.site)
    gone = {f"{BASE}{path}": LoggedChange("deleted", f"{BASE}{path}") for path in ("a", "b")}

    assert output._really(gone) == [LoggedChange("deleted", f"{BASE}b")]


def test_news_that_leaves_after_two_days_deletes_no_page(rig: Rig) -> None:
    rig = again(rig, outputs=ON, sections={"news": {"news": True}})
    news = {"publication": {"name": "N", "language": "en"}, "title": "T"}
    now = rig.now()
    rig.do(upsert("a", section="news", news=news | {"publication_date": now}))
    rig.do(upsert("a", news=news | {"publication_date": "2020-01-01"}))

    assert listed(rig)[:1] == [Listed("created", "a")]
    assert not [each for each in listed(rig) if each.kind == "deleted"]


def test_what_the_shrink_guard_holds_is_not_deleted_until_it_is_confirmed(
    store: redis.Redis, tmp_path: Path
) -> None:
    rig = Rig(store, tmp_path / "public", outputs=ON, shrink_least=1, shard_urls=100)
    rig.do(*map(upsert, range(20)))
    rig.send(*map(delete, range(15)))
    rig.settle()

    assert len(read(rig)) == 20
    held = rig.state.shrink.held()
    rig.state.shrink.confirm({shard: hold.urls for shard, hold in held.items()})
    rig.settle()
    assert sum(each.change == "deleted" for each in read(rig)) == 15


def test_only_the_newest_changes_are_kept_and_from_says_since_when(rig: Rig) -> None:
    log = ChangeLog(rig.client, rig.name, 3)
    for n in range(3):
        log.append([LoggedChange("created", f"{BASE}{n}")])
    rig.client.lset(rig.keys.changes, 0, f"100 created  {BASE}0")
    rig.client.lset(rig.keys.changes, 1, f"100 created  {BASE}1")
    rig.client.set(rig.keys.changes_since, 90)

    since, found = log.append([LoggedChange("deleted", f"{BASE}0")])

    assert since == 101, "of one second all are kept, or none"
    assert [(each.kind, each.loc) for each in found] == [
        ("created", f"{BASE}2"),
        ("deleted", f"{BASE}0"),
    ]
    assert log.read() == (since, found)


def test_more_changes_than_are_kept_are_not_claimed(rig: Rig) -> None:
    log = ChangeLog(rig.client, rig.name, 3)
    first, _ = log.append([LoggedChange("created", f"{BASE}a")])
    since, found = log.append([], unknown=True)

    assert since > first
    assert found == []


def test_a_clock_that_goes_back_leaves_the_order(rig: Rig) -> None:
    log = ChangeLog(rig.client, rig.name, 10)
    log.append([LoggedChange("created", f"{BASE}a")])
    rig.client.lset(rig.keys.changes, 0, f"4000000000 created  {BASE}a")

    _, found = log.append([LoggedChange("deleted", f"{BASE}a")])

    assert [each.at_s for each in found] == [4_000_000_000, 4_000_000_000]


def test_a_damaged_change_gets_into_no_file(rig: Rig) -> None:
    rig.do(upsert("a"))
    rig.client.rpush(rig.keys.changes, b"\xff<", "1 created  a b", "999999999999 deleted  x")

    rig.do(upsert("b"))

    assert listed(rig) == [Listed("created", "a"), Listed("created", "b")]


def test_the_log_survives_a_pass_that_is_repeated(rig: Rig) -> None:
    rig.do(upsert("a"))
    rig.audit().rebuild()

    assert listed(rig) == [Listed("created", "a")]


def test_an_adopted_state_begins_a_new_list(rig: Rig) -> None:
    rig.do(upsert("a"))
    rig.audit().adopt()
    rig.do(upsert("b"))

    assert listed(rig) == [Listed("created", "b")]


@pytest.mark.parametrize("name", NAMES)
def test_a_file_changed_or_removed_by_hand_is_restored(rig: Rig, name: str) -> None:
    rig.do(upsert("a"))
    before = (rig.root / name).read_bytes()
    (rig.root / name).write_bytes(b"theirs") if name == NAMES[0] else (rig.root / name).unlink()
    assert [found.name for found in rig.audit().verify()] == [name]
    monitor = FileMonitor(rig.state, rig.name, rig.site)
    assert [{**monitor.round().wrong} for _ in range(2)][1].keys() == {name}

    rig.settle()

    assert (rig.root / name).read_bytes() == before
    rig.check()


def test_switched_off_the_files_and_the_log_go_and_those_of_others_stay(rig: Rig) -> None:
    rig.do(upsert("a"))
    (rig.root / NAMES[1]).write_bytes(b"theirs")

    off = again(rig)

    assert {path.name for path in rig.root.iterdir()} & {*NAMES} == {NAMES[1]}
    assert not rig.client.exists(rig.keys.changes, rig.keys.changes_since)
    off.check()
    on = again(rig, outputs=ON)
    assert listed(on) == [], "what happened meanwhile is not known"


def test_a_site_without_it_has_no_files_and_no_keys(store: redis.Redis, tmp_path: Path) -> None:
    rig = Rig(store, tmp_path / "public", **OPTIONS)
    rig.do(upsert("a"))

    assert not [name for name in NAMES if (rig.root / name).exists()]
    assert not rig.client.keys("*changes*")


def test_a_removed_site_takes_its_files_along(rig: Rig) -> None:
    rig.do(upsert("a"))

    assert {*NAMES} <= {*remove_files(rig.client, rig.name, rig.site)}
    assert not [name for name in NAMES if (rig.root / name).exists()]


def test_a_file_that_cannot_be_written_delays_nothing(rig: Rig) -> None:
    rig.root.mkdir(exist_ok=True)
    (rig.root / NAMES[0]).mkdir()

    rig.do(upsert("a"))

    assert rig.listed() == {f"{BASE}a": None}


def test_a_second_target_gets_the_same_change_list(store: redis.Redis, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    rig = Rig(
        store, tmp_path / "public", outputs=ON, targets=[{"url": str(other), "name": "second"}]
    )
    rig.do(upsert("a"), upsert("b"))
    rig.do(delete("b"))
    for follower in rig.audit()._followers:
        while follower.tick():
            pass

    assert {name: (other / name).read_bytes() for name in NAMES} == {
        name: (rig.root / name).read_bytes() for name in NAMES
    }
