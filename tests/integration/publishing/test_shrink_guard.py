"""What deletes too much at once is held until somebody confirms it (RELIABILITY T32)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import redis
from flask.testing import FlaskClient
from typer.testing import CliRunner

from deploy.cli.program import app
from shared.admin.site_status import Inspector
from shared.config.settings import Settings
from shared.sitemap.shards import Shard
from shared.store.publishing.publish_batch import PublishedFile
from shared.store.publishing.publish_work import PublishBatch, PublishedShard
from tests.integration.conftest import TOKEN, RedisServer, Signer
from tests.integration.pipeline import Pipeline
from tests.integration.rig import BASE, Rig, as_written
from worker.checks.file_monitor import FileMonitor
from worker.publishing.upkeep.shard_compaction import drain_emptiest

ONE = Shard("pages", 1)


def upsert(n: int, **members: Any) -> dict[str, Any]:
    return {"type": "upsert", "loc": f"p/{n:04}", **members}


def delete(n: int) -> dict[str, Any]:
    return {"type": "delete", "loc": f"p/{n:04}"}


def urls(rig: Rig) -> set[int]:
    return {int(loc.rpartition("/")[2]) for loc in rig.listed()}


@pytest.fixture
def rig(store: redis.Redis, tmp_path: Path) -> Rig:
    """A site of 100 pages in one file."""
    rig = Rig(store, tmp_path / "public", robots="create")
    rig.do(*map(upsert, range(100)))
    return rig


def confirm(rig: Rig) -> None:
    holds = rig.state.shrink
    holds.confirm({shard: hold.urls for shard, hold in holds.held().items()})


def pass_window(rig: Rig, shard: Shard = ONE) -> None:
    """As if the last publishes had been long ago."""
    file = rig.state.files([shard.section])[shard]
    aged = file._replace(peak_since=file.peak_since - 601)
    rig.client.hset(rig.keys.files(shard.section), str(shard.number), aged.pack())


def test_deleting_everything_leaves_all_as_it_was(rig: Rig) -> None:
    before = {path.name: as_written(path) for path in rig.root.iterdir()}
    lines = rig.state.lines(0)

    rig.do(*map(delete, range(100)))

    assert before == {path.name: as_written(path) for path in rig.root.iterdir()}
    assert rig.state.lines(0) == lines
    assert rig.quiet()
    assert rig.inbox.rest(), "the site may sleep"
    assert not list(rig.audit().verify())
    (hold,) = rig.state.shrink.held().items()
    assert (hold[0], hold[1].urls, hold[1].reference) == (ONE, 0, 100)


def test_half_of_the_pages_may_go_and_one_more_is_held(rig: Rig) -> None:
    rig.do(*map(delete, range(50)))
    assert urls(rig) == set(range(50, 100))
    rig.check()

    rig.do(delete(50))

    assert urls(rig) == set(range(50, 100))
    assert list(rig.state.shrink.held()) == [ONE]


def test_a_drip_of_single_deletes_is_held_as_well(rig: Rig) -> None:
    rig.do(*map(delete, range(45)))
    for n in range(45, 60):
        rig.do(delete(n))

    assert urls(rig) == set(range(50, 100))
    assert rig.state.shrink.held()[ONE][1:] == (40, 100)


def test_what_a_window_held_goes_by_itself_when_the_window_has_passed(rig: Rig) -> None:
    rig.do(*map(delete, range(50)))
    rig.do(delete(50))
    checker = FileMonitor(rig.state, rig.name, rig.site)
    checker.review()
    assert rig.quiet(), "not yet"

    pass_window(rig)
    checker.review()
    rig.settle()

    assert urls(rig) == set(range(51, 100))
    assert not rig.state.shrink.held()
    rig.check()


def test_a_batch_does_not_go_by_itself_however_long_it_is_held(rig: Rig) -> None:
    rig.do(*map(delete, range(90)))
    pass_window(rig)

    FileMonitor(rig.state, rig.name, rig.site).review()

    assert rig.quiet()
    assert len(urls(rig)) == 100


def test_confirming_lets_the_pages_go(rig: Rig) -> None:
    rig.do(*map(delete, range(90)))

    confirm(rig)
    rig.settle()

    assert urls(rig) == set(range(90, 100))
    assert not rig.state.shrink.held()
    assert not rig.client.exists(rig.keys.allowed)
    rig.check()


def test_confirming_the_end_of_a_site_removes_its_files(rig: Rig) -> None:
    rig.do(*map(delete, range(100)))

    confirm(rig)
    rig.settle()

    assert rig.files() == {}
    rig.check()


def test_confirming_permits_no_more_than_was_shown(store: redis.Redis, tmp_path: Path) -> None:
    rig = Rig(store, tmp_path, shrink_least=10)
    rig.do(*map(upsert, range(200)))
    rig.do(*map(delete, range(160)))
    shown = rig.state.shrink.held()
    rig.send(*map(delete, range(160, 190)))
    rig.pump().apply_all()

    rig.state.shrink.confirm({shard: hold.urls for shard, hold in shown.items()})
    rig.settle()

    assert len(urls(rig)) == 200
    assert rig.state.shrink.held()[ONE][1:] == (10, 40), "measured against what was confirmed"
    rig.do(*map(upsert, range(160, 190)))
    assert urls(rig) == set(range(160, 200)), "what was confirmed is still permitted"
    rig.check()


def test_deletes_after_a_confirmed_drop_are_measured_against_it(rig: Rig) -> None:
    rig.do(*map(upsert, range(100, 400)))
    rig.do(*map(delete, range(250)))
    confirm(rig)
    rig.settle()
    assert len(urls(rig)) == 150

    rig.do(*map(delete, range(250, 340)))

    assert len(urls(rig)) == 150
    assert rig.state.shrink.held()[ONE][1:] == (60, 150)


def about_to_hold(rig: Rig) -> PublishedShard:
    """A publisher `p:1` has judged the shard again, and not yet recorded what it found."""
    rig.state.mark_dirty([ONE])
    begun = rig.begin("p:1", [ONE])
    assert isinstance(begun, PublishBatch)
    (taken,) = begun.taken
    assert taken.file is not None
    return PublishedShard(taken, {}, taken.file, 0, begun.lines[0][0], held=(10, 100))


def test_a_confirmation_while_it_is_judged_again_is_not_lost(rig: Rig) -> None:
    rig.do(*map(delete, range(90)))
    done = about_to_hold(rig)

    confirm(rig)
    assert rig.lease.commit("p:1", [done], {}).publishes

    assert rig.state.dirty() == [ONE]
    rig.settle()
    assert urls(rig) == set(range(90, 100))
    rig.check()


def test_events_while_it_is_judged_again_are_not_lost(rig: Rig) -> None:
    """What the publisher took waits on, and what came in since is later than that."""
    rig.do(*map(delete, range(90)))
    done = about_to_hold(rig)

    rig.send(*map(upsert, range(5)), delete(95))
    rig.pump().apply_all()
    assert rig.lease.commit("p:1", [done], {}).publishes

    assert rig.state.dirty() == [ONE]
    rig.settle()
    assert rig.state.shrink.held()[ONE][1:] == (14, 100)
    confirm(rig)
    rig.settle()
    assert urls(rig) == {*range(5), *range(90, 95), *range(96, 100)}
    rig.check()


@pytest.mark.parametrize("again", [range(100), range(60)], ids=["all", "enough of them"])
def test_sending_the_pages_again_releases_the_hold(rig: Rig, again: range) -> None:
    before = as_written(rig.root / "pages-1.xml")
    rig.do(*map(delete, range(100)))

    rig.do(*map(upsert, again))

    assert urls(rig) == set(again)
    assert not rig.state.shrink.held()
    assert (as_written(rig.root / "pages-1.xml") == before) == (again == range(100))
    rig.check()


def test_an_import_releases_the_hold(store: redis.Redis, tmp_path: Path) -> None:
    site = Pipeline(store, tmp_path / "public", BASE.rstrip("/"))
    pages = tmp_path / "pages.txt"
    pages.write_text("".join(f"{BASE}{n}\n" for n in range(100)))
    site.bring(f"sitemap:{pages}")
    before = site.sums()
    site.send([{"type": "delete", "loc": f"{BASE}{n}"} for n in range(100)])
    held = site.state.shrink.held
    assert list(held()) == [ONE]

    site.bring(f"sitemap:{pages}")

    assert not held()
    assert site.sums() == before


def test_pages_sent_again_return_to_the_files_that_are_held(
    store: redis.Redis, tmp_path: Path
) -> None:
    """Also where these are not the last of their section, where new pages go."""
    rig = Rig(store, tmp_path, shard_urls=60)
    rig.do(*map(upsert, range(180)))
    before = rig.files()
    rig.do(*map(delete, range(180)))
    assert len(rig.state.shrink.held()) == 3

    rig.do(*map(upsert, range(180)))

    assert not rig.state.shrink.held()
    assert rig.files() == before
    rig.check()


def test_pages_deleted_and_sent_again_before_a_publish_are_not_listed_twice(
    store: redis.Redis, tmp_path: Path
) -> None:
    rig = Rig(store, tmp_path, shard_urls=60)
    rig.do(*map(upsert, range(120)))
    rig.send(*map(delete, range(60)))
    rig.pump().apply_all()

    rig.do(*map(upsert, range(60)))

    assert not rig.state.shrink.held()
    assert urls(rig) == set(range(120))
    rig.check()


def test_pages_that_move_to_another_section_are_not_dropped(
    store: redis.Redis, tmp_path: Path
) -> None:
    rig = Rig(store, tmp_path, sections={"posts": {}})
    rig.do(*map(upsert, range(100)))

    for at in range(0, 100, 20):
        rig.do(*(upsert(n, section="posts") for n in range(at, at + 20)))

    assert not rig.state.shrink.held()
    assert set(rig.shard_files()) == {"posts-1"}
    assert not rig.client.exists(rig.keys.allowed)
    rig.check()


def test_draining_a_nearly_empty_shard_is_no_loss(store: redis.Redis, tmp_path: Path) -> None:
    rig = Rig(store, tmp_path, shard_urls=300)
    rig.do(*map(upsert, range(350)))
    rig.do(*map(delete, range(240)))
    held = drain_emptiest(rig.pages, rig.state)
    assert held is None, "its file would list what has moved"
    confirm(rig)
    rig.settle()

    assert drain_emptiest(rig.pages, rig.state) == ONE
    rig.settle()

    assert not rig.state.shrink.held()
    assert set(rig.shard_files()) == {"pages-2"}
    assert urls(rig) == set(range(240, 350))
    rig.check()


def test_shards_that_are_held_starve_no_other(store: redis.Redis, tmp_path: Path) -> None:
    """A pass takes 16 shards."""
    rig = Rig(store, tmp_path, shard_urls=2, shrink_least=2, sections={"posts": {}})
    rig.do(*map(upsert, range(140)), upsert(5000, section="posts"))
    rig.send(*map(delete, range(140)))
    rig.pump().apply_all()

    rig.send(upsert(5001, section="posts"))
    rig.pump().run()

    assert len(rig.state.shrink.held()) == 70
    assert {5000, 5001} < urls(rig)
    assert rig.quiet()
    assert not rig.client.exists(rig.keys.awake), "laid to rest"


def test_damaged_shards_starve_no_other(store: redis.Redis, tmp_path: Path) -> None:
    rig = Rig(store, tmp_path, shard_urls=1)
    rig.do(*map(upsert, range(21)))
    for number in range(1, 21):
        key = rig.keys.blocks(Shard("pages", number))
        stored = store.hget(key, "0")
        assert isinstance(stored, bytes)
        store.hset(key, "0", stored[:-3] + b"xxx")
    rig.send(*(upsert(n, lastmod="2026-01-01") for n in range(21)))
    pump = rig.pump()
    pump.run(5)

    rig.send(upsert(20, lastmod="2026-01-02"))
    pump.run(5)

    assert rig.listed()[f"{BASE}p/0020"] == "2026-01-02"
    assert len(rig.state.dirty()) == 20
    assert "damaged" in pump.publisher.damaged[ONE]


def test_a_hold_outlives_a_restart_and_says_since_when(rig: Rig) -> None:
    rig.do(*map(delete, range(90)))
    (before,) = rig.state.shrink.held().values()
    rig.client.hset(rig.keys.held, str(ONE), f"{before.since - 100} 10 100")

    rig.do(delete(90))

    assert rig.state.shrink.held()[ONE] == (before.since - 100, 9, 100)
    assert len(urls(rig)) == 100


def test_a_record_of_before_the_guard_existed_is_read(rig: Rig) -> None:
    file = rig.state.files(["pages"])[ONE]
    old = " ".join(map(str, file[:4])).encode()
    assert PublishedFile.unpack(old)[:4] == file[:4]
    rig.client.hset(rig.keys.files("pages"), "1", old)

    rig.do(*map(delete, range(60)))

    assert rig.state.shrink.held()[ONE][1:] == (40, 100)


def test_a_held_file_that_was_lost_comes_back_as_it_was_published(rig: Rig) -> None:
    before = rig.files()["pages-1.xml"].content
    rig.do(*map(delete, range(90)))
    for path in rig.root.iterdir():
        path.unlink()

    rig.state.mark_dirty([ONE])
    rig.settle()

    assert rig.files()["pages-1.xml"].content == before
    assert list(rig.state.shrink.held()) == [ONE]


def test_rebuild_leaves_what_is_held_and_ends(rig: Rig) -> None:
    before = rig.files()["pages-1.xml"].content
    rig.do(*map(delete, range(90)))
    (rig.root / "pages-1.xml").write_bytes(b"spoilt")

    assert "pages-1.xml" in rig.audit().rebuild()

    assert rig.files()["pages-1.xml"].content == before
    assert list(rig.state.shrink.held()) == [ONE]
    assert rig.quiet()


def test_the_alarm_is_raised_once(rig: Rig, capsys: pytest.CaptureFixture[str]) -> None:
    rig.send(*map(delete, range(90)))
    pump = rig.pump()
    for n in range(3):
        pump.run()
        rig.send(delete(90 + n))

    said = [line for line in capsys.readouterr().out.splitlines() if "shrink guard" in line]
    assert len(said) == 1
    assert "error" in said[0]
    assert "sitemapd confirm --site demo" in said[0]


def test_the_inspector_says_what_is_held(rig: Rig) -> None:
    rig.do(*map(delete, range(90)))
    inspector = Inspector(rig.client, rig.name, rig.site)

    (held,) = inspector.status()["held"]
    gone, there = inspector.entry(f"{BASE}p/0001"), inspector.entry(f"{BASE}p/0095")

    assert (held["shard"], held["from"], held["to"]) == ("pages/1", 100, 10)
    assert gone["listed"] is False
    assert "pages-1.xml still lists it" in gone["why"]
    assert there["listed"] is True
    assert gone["held"] == there["held"] == held


def test_a_sender_that_deletes_everything_is_answered_and_nothing_goes(
    web: FlaskClient, config: Settings, store: redis.Redis, signed: Signer
) -> None:
    rig = Rig(store, config.sites["demo"].web_root)
    for path in rig.root.iterdir() if rig.root.exists() else ():
        path.unlink()
    for kind in ("upsert", "delete"):
        events = [{"type": kind, "loc": f"{BASE}{n}"} for n in range(100)]
        body = json.dumps(events).encode()
        headers = signed(body, ident=f"msg_{kind}")
        reply = web.post("/v1/sites/demo/events", data=body, headers=headers)
        assert reply.status_code == 202
        rig.settle()

    assert len(rig.listed()) == 100
    reader = {"Authorization": f"Bearer {TOKEN}"}
    (held,) = web.get("/v1/sites/demo", headers=reader).get_json()["held"]
    assert (held["from"], held["to"]) == (100, 0)


CONFIG = """
redis_url = "{url}"
[sites.demo]
base_url = "{base}"
web_root = "public"
tokens = ["0123456789abcdef"]
"""


def test_the_commands_show_and_confirm_it(
    store: redis.Redis, redis_server: RedisServer, tmp_path: Path
) -> None:
    (tmp_path / "sitemapd.toml").write_text(CONFIG.format(url=redis_server.url, base=BASE))
    rig = Rig(store, tmp_path / "public", shard_urls=60)
    rig.do(*map(upsert, range(180)))
    rig.do(*map(delete, range(180)))
    runner, home = CliRunner(), ["--home", str(tmp_path)]

    status = runner.invoke(app, ["status", *home])
    entry = runner.invoke(app, ["entry", f"{BASE}p/0001", *home])
    unknown = runner.invoke(app, ["confirm", "posts/1", *home])
    rebuilt = runner.invoke(app, ["rebuild", *home, "--json"])
    one = runner.invoke(app, ["confirm", "pages/2", *home])
    rest = runner.invoke(app, ["confirm", *home, "--json"])
    none = runner.invoke(app, ["confirm", *home])

    assert "pages/1  60 -> 0 pages  since 20" in status.stdout
    assert status.stdout.endswith("to publish what is held: sitemapd confirm --site demo\n")
    assert "shrink guard" in entry.stdout
    assert "pages/1, pages/2, pages/3" in str(unknown.exception)
    assert json.loads(rebuilt.stdout.splitlines()[-1])["still_held"] == [
        "pages/1",
        "pages/2",
        "pages/3",
    ]
    assert one.stdout.splitlines() == ["pages/2  60 -> 0 pages", "published within seconds"]
    assert json.loads(rest.stdout)["confirmed"] == [
        {"shard": "pages/1", "from": 60, "to": 0},
        {"shard": "pages/3", "from": 60, "to": 0},
    ]
    assert none.stdout == "nothing is held\n"
    rig.settle()
    assert rig.files() == {}
