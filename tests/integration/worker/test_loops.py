"""Whatever runs in the background and fails or hangs is shown, and the rest goes on (F30)."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import redis

from deploy.doctor import work
from deploy.doctor.runner import Case, examine
from shared.admin.site_status import Inspector
from shared.config.live import LiveSettings
from shared.config.settings import Settings
from shared.events.resync_scope import WHOLE
from shared.metrics.collector import Collector, of_server
from shared.store.keys import EVERYWHERE
from shared.store.notify.notification_queue import NotificationQueue
from shared.store.notify.subscriptions import Subscriptions
from shared.store.operations import config_reports
from shared.store.operations.checks import CheckStore
from shared.store.operations.config_follower import ConfigFollower
from shared.store.operations.config_reports import ConfigReports
from shared.store.operations.loop_health import (
    HEALTH,
    HEALTH_S,
    LOOPS,
    LoopHealth,
    LoopReport,
    LoopTrouble,
    ReportedLoops,
)
from shared.store.operations.resync_requests import ResyncRequests
from shared.store.operations.worker_registry import HEARTBEAT, NAMES
from tests.integration.conftest import RedisServer, Wait, wait_until
from tests.integration.console.browsing import Browser
from tests.integration.console.test_overview import concerns, overview
from tests.integration.engines import Engine, engine, reply
from tests.integration.logs import silence
from tests.integration.notified import TABLES, here
from tests.integration.readback.reading import bing_table
from tests.integration.rig import BASE, Rig, check_keys
from worker.loops import watchdog
from worker.notify.dispatcher import Dispatcher
from worker.readback.site_readback import SiteReadback
from worker.reconcile.reconcile_scheduler import SLOW_S
from worker.runtime import Runtime

A = BASE + "a"
LATE_S = SLOW_S + 1
FEEDS = {
    "secret": "a-secret-of-the-feeds", "topics": ["http://127.0.0.1:9/f"], "allow_private": True,
}  # fmt: skip


@pytest.fixture(autouse=True)
def watched_closely(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watchdog, "WATCH_S", 0.1)


@pytest.fixture
def server() -> Iterator[Engine]:
    with engine(reply(200, {"d": []})) as server:
        yield server


@pytest.fixture
def bad(store: redis.Redis, tmp_path: Path, server: Engine) -> Rig:
    """A site of which something will be damaged."""
    source = tmp_path / "pages.txt"
    source.write_text(f"{A}\n")
    options = here(
        {"indexnow": TABLES["indexnow"](server.url) | {"key_location": f"{BASE}key.txt"}},
        source=f"sitemap:{source}", check_interval=0.1, shrink_share=1.0,
        sources={"websub": FEEDS}, readback={"bing": bing_table(server.url)},
        sections={"news": {"news": True}},
    )  # fmt: skip
    return Rig(store, tmp_path / "bad", name="bad", **options)


@pytest.fixture
def good(store: redis.Redis, tmp_path: Path) -> Rig:
    return Rig(store, tmp_path / "good", name="good")


@pytest.fixture
def config(bad: Rig, good: Rig, redis_server: RedisServer) -> Settings:
    sites = {rig.name: rig.site for rig in (bad, good)}
    alerts = {"slack": {"url": "https://127.0.0.1:9/never/asked"}}
    return Settings(redis_url=redis_server.url, sites=sites, alerts=alerts)  # type: ignore[arg-type]


@contextmanager
def running(config: Settings) -> Iterator[Runtime]:
    plant = Runtime(config, "w1")
    file = next(iter(config.sites.values())).web_root.parent / "sitemapd.toml"
    file.write_text("")
    follower = ConfigFollower(LiveSettings(file), plant.client, "worker w1", plant.follow)
    with silence():
        plant.start(look_at_file=follower.look)
        try:
            yield plant
        finally:
            plant.stop()
            for loop in plant.loops:
                loop.join(10)
            plant.end()


def found(store: redis.Redis, site: str = "bad") -> dict[str, ReportedLoops]:
    return {each.trouble.loop: each for each in LoopHealth(store).of_site(site)}


def wrong_type(key: Callable[[Rig], str]) -> Callable[[Rig, Runtime], None]:
    def damage(rig: Rig, _: Runtime) -> None:
        rig.client.delete(key(rig))
        rig.client.set(key(rig), "of the wrong type", ex=600)

    return damage


def no_wish(rig: Rig, plant: Runtime) -> None:
    wait_until(lambda: rig.client.exists(f"{HEARTBEAT}w1") and not plant.quiet(), "its first beat")
    rig.client.rpush(EVERYWHERE + "wanted:w1", "of the wrong type")
    rig.client.expire(EVERYWHERE + "wanted:w1", 600)


def damaged_file(rig: Rig, _: Runtime) -> None:
    rig.client.hset(rig.keys.files("pages"), "1", "no record")


def checks(rig: Rig, plant: Runtime) -> None:
    damaged_file(rig, plant)
    CheckStore(rig.client, rig.name).ask("an admin")


def no_source(rig: Rig, plant: Runtime) -> None:
    source = rig.site.source.get_secret_value().removeprefix("sitemap:")
    Path(source).unlink()
    rig.send({"type": "resync"})
    plant.wake(rig.name)


def tidied(rig: Rig, plant: Runtime) -> None:
    wrong_type(lambda rig: rig.keys.tombs)(rig, plant)
    plant.upkeep.tidy()  # as the schedule's message does


def refreshed(rig: Rig, plant: Runtime) -> None:
    rig.client.hset(rig.keys.shards("news"), "1", "no record")
    plant.upkeep.refresh()


OF_EVERY_SITE = [loop for loop in LOOPS if loop not in {"follow", "looks"}]
"""`follow` runs for sites with several targets: tests/integration/publishing/test_followers.py;
`looks` for those whose pages are looked at: tests/integration/looks/test_looker.py.
"""
FAILS: dict[str, Callable[[Rig, Runtime], None]] = {
    "heartbeat": no_wish,
    "sweep": wrong_type(lambda rig: rig.keys.inbox),
    "monitor": damaged_file,
    "tidy": tidied,
    "refresh": refreshed,
    "checks": checks,
    "reconcile": no_source,
    "notify": wrong_type(lambda rig: rig.keys.notify("indexnow")),
    "websub": wrong_type(lambda rig: rig.keys.websub),
    "configuration": wrong_type(lambda _: config_reports.KEY),
    "alerts": wrong_type(lambda rig: rig.keys.held),
    "readback": wrong_type(lambda rig: rig.keys.readback),
}


def test_every_loop_is_made_to_fail_here() -> None:
    assert set(FAILS) == set(OF_EVERY_SITE)


@pytest.mark.parametrize("loop", OF_EVERY_SITE)
def test_f30_a_loop_that_raises_is_shown_with_its_reason_and_the_others_go_on(
    bad: Rig, good: Rig, config: Settings, store: redis.Redis, until: Wait, loop: str
) -> None:
    bad.do({"type": "upsert", "loc": "a"})
    with running(config) as plant:
        FAILS[loop](bad, plant)
        until(lambda: loop in found(store), f"{loop} is shown")
        told = found(store)[loop].trouble
        good.send({"type": "upsert", "loc": "b"})
        until((good.root / "pages-1.xml").exists, "the other site is published")
        of_others = {each.trouble.loop for each in LoopHealth(store).of_site("good")}

    assert told.state == "failing"
    assert len(told.reason) > 10
    if loop in {
        "heartbeat",
        "configuration",
    }:  # they are of no site; a loop that begins just then asks for the wish, too
        assert loop in of_others
    else:
        assert not of_others
    assert not store.exists(HEALTH + "w1"), "a worker that ended says nothing"


def test_f30_what_is_mended_is_shown_no_longer(
    bad: Rig, config: Settings, store: redis.Redis, until: Wait
) -> None:
    bad.do({"type": "upsert", "loc": "a"})
    with running(config) as plant:
        FAILS["notify"](bad, plant)
        until(lambda: "notify" in found(store), "it is shown")

        store.delete(bad.keys.notify("indexnow"))
        NotificationQueue(store, "bad").enqueue(["indexnow"], [A], 0)
        until(lambda: "notify" not in found(store), "it works again")

        until(lambda: NotificationQueue(store, "bad").records(), "the engine is told")


@pytest.mark.parametrize("loop", OF_EVERY_SITE)
def test_f30_a_loop_that_hangs_is_shown_and_the_others_go_on(
    bad: Rig, good: Rig, config: Settings, store: redis.Redis, until: Wait,
    monkeypatch: pytest.MonkeyPatch, loop: str,
) -> None:  # fmt: skip
    """Its clock alone is moved on, by the minute after which that is seen."""
    bad.do({"type": "upsert", "loc": "a"})
    hanging, over = threading.Event(), threading.Event()

    def hang(*_: Any) -> Any:
        hanging.set()
        over.wait(60)

    # These begin at once, and what an engine refuses is not asked again for a while.
    monkeypatch.setattr(Dispatcher, "notify", hang if loop == "notify" else Dispatcher.notify)
    monkeypatch.setattr(SiteReadback, "read", hang if loop == "readback" else SiteReadback.read)
    with running(config) as plant:
        own = next(each for each in plant.loops if each.name == loop)
        hangs = {
            "heartbeat": (plant._heart, "_work"), "sweep": (plant._sites, "adopt"),
            "monitor": (plant._sites.present["bad"].checkers[0], "tick"),
            "tidy": (plant._sites.present["bad"].consumer.pages, "purge_tombstones"),
            "refresh": (plant._sites.present["bad"].state, "shards"),
            "checks": (plant._companions[0], "_check"),
            "reconcile": (plant._answerer, "_look_at"),
            "websub": (plant._companions[-2]._sites["bad"][1], "due"),
            "configuration": (ConfigReports, "report"),
            "alerts": (plant._companions[1], "_signs"),
        }  # fmt: skip
        if loop in hangs:
            monkeypatch.setattr(*hangs[loop], hang)
            # These do no work for sites that nothing is asked of.
            if loop == "checks":
                CheckStore(store, "bad").ask("an admin")
            if loop == "reconcile":
                store.zadd(bad.keys.resync, {str(WHOLE): 1})
            if loop == "sweep":
                bad.send({"type": "upsert", "loc": "c"})
        else:
            NotificationQueue(store, "bad").enqueue(["indexnow"], [A], 0)
            plant.notify()
        plant.reconcile()
        upkeep = plant.upkeep
        message = {"tidy": upkeep.tidy, "refresh": upkeep.refresh}.get(loop, lambda: None)
        thread = threading.Thread(target=message)  # as a message of the schedule
        thread.start()
        try:
            assert hanging.wait(30)
            monkeypatch.setattr(own, "_clock", lambda: time.monotonic() + LATE_S)
            until(lambda: loop in found(store), f"{loop} is shown")
            told = found(store)[loop].trouble
            good.send({"type": "upsert", "loc": "b"})
            plant.wake("good")
            assert set(good.listed()) == {f"{BASE}b"}
        finally:
            over.set()
            thread.join()

    assert told.state == "hanging"
    assert "in hang" in told.reason or "in wait" in told.reason
    assert "no progress for" in told.reason


def test_damaged_notices_are_given_up_and_the_others_are_told(
    bad: Rig, store: redis.Redis, config: Settings, server: Engine, until: Wait
) -> None:
    bad.do(*({"type": "upsert", "loc": name} for name in ("a", "b", "c")))
    notices = NotificationQueue(store, "bad")
    lookup = bad.pages.lookup.records([BASE + "b"])
    assert lookup
    digest = rigs_digest(BASE + "b")
    store.hset(bad.keys.loc(digest), digest[2:], b"short")
    store.zadd(bad.keys.notify("indexnow"), {b"\xff\xfe": 0})
    store.hset(bad.keys.breakers, "indexnow of-nowhere", "no breaker")

    with running(config):
        until(notices.records, "the engine is told")
        until(lambda: len(list(notices.dead())) == 2, "the others are given up")

    told = next(each for each in server.asked if each.method == "POST")
    assert sorted(told.json()["urlList"]) == [A, BASE + "c"]
    given_up = {loc for dead in notices.dead() for loc in dead.locs}
    assert given_up == {BASE + "b", "\\xff\\xfe"}
    assert notices.replay(["indexnow"], 0) == 2


def rigs_digest(loc: str) -> bytes:
    from shared.domain.page_record import digest_of

    return digest_of(loc)


def test_what_is_no_scope_of_a_resync_is_forgotten_and_the_others_are_answered(
    bad: Rig, store: redis.Redis, config: Settings, until: Wait
) -> None:
    store.zadd(bad.keys.resync, {b"\xff": 1, "nonsense": 1, "section pages": 1})

    with running(config):
        until(lambda: not ResyncRequests(store, "bad").open(), "it is answered")
        until(lambda: bad.quiet() and bad.root.exists(), "what the source lists is published")

    assert set(bad.listed()) == {A}

    assert not store.exists(bad.keys.resync)


def test_a_damaged_subscription_is_asked_for_anew_and_stops_no_other(
    bad: Rig, store: redis.Redis
) -> None:
    known = Subscriptions(store, "bad")
    known.add(["http://a.example/f", "http://b.example/f"], 7)
    store.hset(bad.keys.websub, "http://a.example/f", '["http://a.example/f", 1]')

    found = {each.topic: (each.state, each.due) for each in known.all()}

    assert found == {"http://a.example/f": ("failed", 1), "http://b.example/f": ("new", 7)}
    assert known.change("http://a.example/f", lambda one: one.begun(10)) is not None
    assert {each.state for each in known.all()} == {"asked", "new"}


def test_an_entry_that_cannot_be_taken_out_at_its_hour_stops_no_other(
    good: Rig, store: redis.Redis, config: Settings, until: Wait
) -> None:
    video = {
        "thumbnail_loc": f"{BASE}t.jpg", "title": "t", "description": "d",
        "content_loc": f"{BASE}v.mp4", "expiration_date": "2099-01-01",
    }  # fmt: skip
    good.do(*({"type": "upsert", "loc": name, "videos": [video]} for name in ("a", "b")))
    digest = rigs_digest(A)
    store.hset(good.keys.loc(digest), digest[2:], b"short")
    store.zadd(good.keys.expiry, {A: 1, f"{BASE}b": 1, b"\xff": 1})
    now = time.time() * 1000

    with running(config):
        until(
            lambda: (
                min((at for _, at in store.zrange(good.keys.expiry, 0, -1, withscores=True))) > now
            ),
            "all were looked at",
        )

    later = dict(store.zrange(good.keys.expiry, 0, -1, withscores=True))
    assert now + 3_000_000 < later[A.encode()] < now + 4_000_000
    assert later[f"{BASE}b".encode()] > now + 10_000_000


def tell(store: redis.Redis, *troubles: LoopTrouble) -> None:
    store.zadd(NAMES, {"w1": time.time()})
    store.expire(NAMES, 60)
    LoopHealth(store).report("w1", LoopReport(succeeded={"notify": 1_000.0}, troubles=troubles))


def trouble(**said: Any) -> LoopTrouble:
    usual = {
        "loop": "notify", "site": "bad", "part": "indexnow", "state": "failing",
        "since": time.time() - 90, "times": 4, "reason": "KeyError: 'posts-2026-12'",
    }  # fmt: skip
    return LoopTrouble.model_validate(usual | said)


def test_f30_status_doctor_and_metrics_name_what_fails(bad: Rig, good: Rig) -> None:
    tell(bad.client, trouble())

    (said,) = Inspector(bad.client, "bad", bad.site).status()["failing"]
    (check,) = [check for check in work.CHECKS if check.name == "loops"]
    cases = [Case(rig.settings, rig.name, rig.site, rig.client, "") for rig in (bad, good)]
    doctor = {result.site: result for result in examine(cases, [check])}
    samples = {
        each.labels: each.value
        for rig in (bad, good)
        for each in Collector(rig.client, {rig.name: rig.site}).samples([rig.name])
        if each.metric.name == "sitemapd_loop_failing"
    }
    rounds = {
        each.labels: each.value
        for each in of_server(bad.client)
        if each.metric.name == "sitemapd_loop_last_round_timestamp_seconds"
    }

    assert (said["loop"], said["part"], said["worker"], said["times"]) == (
        "notify", "indexnow", "w1", 4,
    )  # fmt: skip
    assert 90 <= said["for_s"] < 600
    assert said["reason"] == "KeyError: 'posts-2026-12'"
    assert doctor["bad"].status == "fail"
    assert "posts-2026-12" in doctor["bad"].detail
    assert doctor["good"].status == "ok"
    assert {labels for labels, value in samples.items() if value} == {("bad", "notify")}
    assert {labels[1] for labels in samples} == set(LOOPS)
    assert rounds == {("notify",): 1_000.0}
    check_keys(bad.client)


def test_f30_the_overview_names_what_fails(ann: Browser, store: redis.Redis) -> None:
    assert "Notify" not in concerns(overview(ann))
    tell(store, trouble(site="demo", reason="<b>bold</b>"))

    card = overview(ann)

    assert "Notify (indexnow) of the worker w1 is failing" in concerns(card)
    assert "<b>bold</b>" in concerns(card)
    assert "Needs you" in card.text_content()


def test_a_report_is_bounded_and_what_is_none_is_left_out(store: redis.Redis) -> None:
    tell(store, *(trouble(site=f"s{n}", reason="x\n" * 500) for n in range(300)))
    store.zadd(NAMES, {"w2": time.time()})
    store.set(HEALTH + "w2", "nonsense", ex=60)

    reports = LoopHealth(store).reports()

    assert list(reports) == ["w1"]
    assert len(reports["w1"].troubles) == 200
    assert store.strlen(HEALTH + "w1") < 300_000
    assert 0 < store.ttl(HEALTH + "w1") <= HEALTH_S
