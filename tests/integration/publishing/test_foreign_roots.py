"""Sitemaps that this state did not write stay, and everybody says so (RELIABILITY F22, F31)."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import redis
from typer.testing import CliRunner

from deploy.cli.output import find
from deploy.cli.program import app
from deploy.commands.events import EventWatch
from shared.admin.site_status import Inspector
from shared.config.filenames import MARKER
from shared.config.settings import Settings
from shared.errors import ForeignStateError
from shared.store.key_table import PERMANENT
from tests.integration.conftest import TOKEN, RedisServer
from tests.integration.rig import BASE, Rig, restore_keys, stored_keys
from webhook.app import create_app
from worker.publishing.targets.ownership import belongs
from worker.publishing.targets.web_root import WebRoot
from worker.publishing.targets.web_root_watch import WebRootWatch

FOREIGN = b'<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"/>\n'


def upsert(n: int, **members: Any) -> dict[str, Any]:
    return {"type": "upsert", "loc": f"p/{n}", **members}


@pytest.fixture
def rig(store: redis.Redis, tmp_path: Path) -> Rig:
    """A site of 20 pages in five files."""
    rig = Rig(store, tmp_path / "public", shard_urls=4, robots="create")
    rig.do(*map(upsert, range(20)))
    return rig


def contents(root: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in root.iterdir() if path.is_file()}


def lose_marker(rig: Rig) -> None:
    """As `cp public/* elsewhere` does, which leaves dot-files behind and dates all files anew."""
    copied = rig.root.with_name("copied")
    copied.mkdir()
    for path in rig.root.glob("*"):
        if not path.name.startswith("."):
            shutil.copyfile(path, copied / path.name)
    shutil.rmtree(rig.root)
    copied.rename(rig.root)


def try_to_publish(rig: Rig) -> str:
    """Have an event applied and published; why it is not."""
    rig.send(upsert(99))
    rig.pump().run()
    with pytest.raises(ForeignStateError) as refused:
        rig.pump().publisher.publish()
    return str(refused.value)


def test_a_publish_while_the_marker_is_looked_at_makes_it_no_foreign_one(rig: Rig) -> None:
    """Seen without the lease: the marker of that publish is newer than what came before."""

    class Busy(WebRoot):
        reads = 0

        def read(self, name: str) -> bytes | None:
            Busy.reads += 1
            if Busy.reads == 1:
                rig.do(upsert(1, lastmod="2020-01-01"))
            return super().read(name)

    with closing(Busy(rig.root)) as root:
        assert belongs(root, rig.state, rig.name, rig.site)

    assert Busy.reads > 1


def watch(rig: Rig) -> WebRootWatch:
    return WebRootWatch(rig.client, rig.name, rig.site, "w1")


def test_an_empty_store_overwrites_nothing_though_the_marker_is_lost(rig: Rig) -> None:
    """RELIABILITY F31."""
    lose_marker(rig)
    before = contents(rig.root)
    rig.client.flushall()

    said = try_to_publish(rig)

    assert contents(rig.root) == before
    assert "sitemapd publish --site demo --adopt" in said
    assert rig.state.dirty(), "the work stays queued"


def test_an_older_store_overwrites_nothing_though_the_marker_is_lost(rig: Rig) -> None:
    """Of the same files, one of which was edited since."""
    backup = stored_keys(rig.client, "{demo}*")
    rig.do(upsert(3, lastmod="2020-01-01"))
    lose_marker(rig)
    before = contents(rig.root)
    restore_keys(rig.client, backup)

    said = try_to_publish(rig)

    assert contents(rig.root) == before
    assert "newer state" in said


def test_a_store_of_before_the_last_files_overwrites_nothing(rig: Rig) -> None:
    backup = stored_keys(rig.client, "{demo}*")
    rig.do(*map(upsert, range(20, 40)))
    lose_marker(rig)
    before = contents(rig.root)
    restore_keys(rig.client, backup)

    try_to_publish(rig)

    assert contents(rig.root) == before


def test_a_copy_without_the_marker_goes_on_with_its_own_state(rig: Rig) -> None:
    lose_marker(rig)

    rig.do(upsert(99))

    assert len(rig.listed()) == 21
    rig.check()


def test_a_copy_in_another_form_goes_on_with_its_own_state(
    store: redis.Redis, tmp_path: Path
) -> None:
    rig = Rig(store, tmp_path / "public", shard_urls=4, form="encoded")
    rig.do(*map(upsert, range(20)))
    lose_marker(rig)

    rig.do(upsert(99))

    assert len(rig.listed()) == 21


@pytest.mark.parametrize("name", ["sitemap.xml", "sitemap-2.xml", "pages-1.xml", "pages-7.txt"])
def test_a_sitemap_of_another_program_is_kept_until_somebody_says_adopt(
    store: redis.Redis, tmp_path: Path, name: str
) -> None:
    rig = Rig(store, tmp_path / "public")
    rig.root.mkdir()
    (rig.root / name).write_bytes(FOREIGN)
    (rig.root / "sitemap.css").write_bytes(b"theirs")

    said = try_to_publish(rig)

    assert contents(rig.root) == {name: FOREIGN, "sitemap.css": b"theirs"}
    assert f"sitemapd import --site demo --from sitemap:{rig.root / name}" in said
    rig.audit().publisher.adopt()
    rig.settle()
    assert set(rig.listed()) == {BASE + "p/99"} or name == "pages-7.txt"


@pytest.mark.parametrize(
    "name", ["index.html", "post-sitemap.xml", "blog-2.xml", "robots.txt", "feed.xml", "news.txt"]
)
def test_files_that_are_never_written_stop_nothing(
    store: redis.Redis, tmp_path: Path, name: str
) -> None:
    rig = Rig(store, tmp_path / "public")
    rig.root.mkdir()
    (rig.root / name).write_bytes(b"theirs")

    rig.do(upsert(1))

    assert b"p/1" in (rig.root / "pages-1.xml").read_bytes()
    assert (rig.root / name).read_bytes() == b"theirs"


def test_a_first_publish_that_was_cut_off_goes_on(store: redis.Redis, tmp_path: Path) -> None:
    """The marker was on the disk before the first file, and the state was never recorded."""
    rig = Rig(store, tmp_path / "public", shard_urls=1)
    rig.send(*map(upsert, range(3)))
    rig.pump().apply_all()
    dump = stored_keys(store, "{demo}*")
    store.hsetnx(rig.keys.counters, "run", "the-one")
    dump |= stored_keys(store, rig.keys.counters)
    rig.settle()
    marker = rig.root / MARKER
    marker.write_text(json.dumps(["the-one", 0]))
    restore_keys(store, dump)

    rig.settle()

    assert len(rig.listed()) == 3


CONFIG = """
redis_url = "{url}"
metrics_token = "0123456789abcdef"
[sites.demo]
base_url = "{base}"
web_root = "public"
tokens = ["{token}"]
"""


@pytest.fixture
def lost(rig: Rig, redis_server: RedisServer) -> Rig:
    """The state is gone, and a worker has looked; no event came."""
    (rig.root.parent / "sitemapd.toml").write_text(
        CONFIG.format(url=redis_server.url, base=BASE, token=TOKEN)
    )
    rig.client.flushall()
    watch(rig).look()
    return rig


def settings(rig: Rig, server: RedisServer) -> Settings:
    site = {"base_url": BASE, "web_root": rig.root, "tokens": [TOKEN]}
    token: Any = "0123456789abcdef"
    return Settings(redis_url=server.url, metrics_token=token, sites={"demo": site})  # type: ignore[dict-item]


def test_readyz_says_that_nothing_is_published_and_events_are_still_taken(
    lost: Rig, redis_server: RedisServer
) -> None:
    web = create_app(settings(lost, redis_server)).test_client()

    ready, taking = web.get("/readyz"), web.get("/readyz?accepting")
    sent = web.post(
        "/v1/sites/demo/events", json={"type": "upsert", "loc": BASE + "a"},
        headers={"Authorization": f"Bearer {TOKEN}"},
    )  # fmt: skip

    assert (ready.status_code, ready.get_json()["code"]) == (503, "not-published")
    assert "sitemapd status" in ready.get_json()["detail"]
    assert str(lost.root) not in ready.text, "the address is public"
    assert taking.status_code == 200
    assert sent.status_code == 202


def test_status_metrics_and_the_read_interface_say_so_with_the_remedy(
    lost: Rig, redis_server: RedisServer
) -> None:
    web = create_app(settings(lost, redis_server)).test_client()
    reader = {"Authorization": f"Bearer {TOKEN}"}
    home = ["--home", str(lost.root.parent)]

    printed = CliRunner().invoke(app, ["status", *home]).stdout
    told = web.get("/v1/sites/demo", headers=reader).get_json()["stopped"]
    metrics = web.get("/metrics", headers={"Authorization": "Bearer 0123456789abcdef"}).text

    for said in (" ".join(printed.split()), f"{told['reason']} {told['todo']}"):
        assert "another state" in said
        assert "sitemapd rebuild --site demo --adopt" in said
    assert 'sitemapd_publishing_stopped{site="demo"} 1\n' in metrics


def test_what_is_cured_is_taken_back_without_an_event(rig: Rig, redis_server: RedisServer) -> None:
    marker = (rig.root / MARKER).read_bytes()
    (rig.root / MARKER).write_text('["another", 3]')
    watch(rig).look()
    web = create_app(settings(rig, redis_server)).test_client()
    assert web.get("/readyz").status_code == 503

    (rig.root / MARKER).write_bytes(marker)
    watch(rig).look()

    assert web.get("/readyz").status_code == 200
    assert Inspector(rig.client, rig.name, rig.site).status()["stopped"] is None


def test_adopting_by_publish_writes_every_file_and_is_ready_again(
    lost: Rig, redis_server: RedisServer
) -> None:
    lost.send(*map(upsert, range(3)))
    lost.pump().apply_all()
    home = ["--home", str(lost.root.parent)]

    refused = CliRunner().invoke(app, ["publish", *home])
    done = CliRunner().invoke(app, ["publish", "--adopt", *home])

    assert refused.exit_code == 1
    assert done.exit_code == 0, done.output
    assert len(lost.listed()) >= 3
    assert b"p/0" in (lost.root / "pages-1.xml").read_bytes()
    web = create_app(settings(lost, redis_server)).test_client()
    assert web.get("/readyz").status_code == 200


def test_an_older_state_that_is_adopted_by_publish_writes_every_file(rig: Rig) -> None:
    backup = stored_keys(rig.client, "{demo}*")
    rig.do(upsert(3, lastmod="2020-01-01"))
    restore_keys(rig.client, backup)

    rig.audit().publisher.adopt()
    rig.settle()

    assert rig.listed()[BASE + "p/3"] is None
    rig.check()


def test_a_disk_that_refuses_is_told_of_in_the_same_way(rig: Rig) -> None:
    rig.root.chmod(0o777)
    rig.send(upsert(1, lastmod="2020-01-01"))
    rig.pump().run()
    os.chmod(rig.root, 0o755)

    assert "quarantine" in PERMANENT
    rig.settle()
    assert rig.state.quarantine.stopped() is None


def test_gzip_files_of_another_program_count_as_well(store: redis.Redis, tmp_path: Path) -> None:
    rig = Rig(store, tmp_path / "public", form="xml.gz")
    rig.root.mkdir()
    (rig.root / "pages-1.xml.gz").write_bytes(gzip.compress(FOREIGN))

    assert "pages-1.xml.gz" in try_to_publish(rig)


def test_who_watches_an_event_is_told_that_nothing_is_published(lost: Rig) -> None:
    follow = EventWatch(find(lost.root.parent))
    ids = lost.send(upsert(1))
    lost.pump().run()

    steps = {step["step"]: step["what"] for step in follow.steps(ids, time.perf_counter())}

    assert list(steps) == ["decided", "stopped"]
    assert "sitemapd rebuild --site demo --adopt" in steps["stopped"]


def test_doctor_says_so_as_well(lost: Rig) -> None:
    done = CliRunner().invoke(app, ["doctor", "--offline", "--home", str(lost.root.parent)])

    assert done.exit_code == 1
    assert "nothing is published" in done.stdout
    assert "sitemapd rebuild --site demo --adopt" in " ".join(done.stdout.split())
