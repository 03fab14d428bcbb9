"""`/metrics` of a working system: every declared metric, nothing else, bounded, for who may see."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import redis
from flask import Flask
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_openmetrics
from prometheus_client.parser import text_string_to_metric_families as read

from shared.config.settings import Settings
from shared.errors import StoreError
from shared.metrics.declarations import ANSWERS, DECLARED, METRICS, OTHER
from shared.store.counting.counter_buffer import CounterBuffer
from shared.store.operations.queues import PUBLISH, Queues
from tests.integration.conftest import RedisServer, Signer, Wait
from tests.integration.logs import silence
from webhook import request_metrics
from webhook.app import create_app
from webhook.problems import PROBLEMS
from worker.runtime import Runtime

METRICS_TOKEN = "a-token-for-metrics"
TOKENS = {"demo": "a-token-of-demo-", "other": "a-token-of-other"}
PAGE = {"type": "upsert", "loc": "https://www.example.com/a"}
Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


def settings(url: str, root: Path, secret: str) -> Settings:
    base = {"base_url": "https://www.example.com", "publish_interval": 0}
    sites: dict[str, dict[str, object]] = {
        name: base | {"web_root": root / name, "tokens": [token], "secrets": [secret]}
        for name, token in TOKENS.items()
    }
    # Port 9 discards: nobody answers there.
    bing = {"key": "a-key", "endpoint": "http://127.0.0.1:9/json", "allow_private": True}
    sites["demo"] |= {"notify": {"hosts": ["127.0.0.1"]}, "readback": {"bing": bing}}
    sites["demo"]["targets"] = [{"url": str(root / "second"), "name": "second"}]
    return Settings(redis_url=url, metrics_token=METRICS_TOKEN, sites=sites)  # type: ignore[arg-type]


@pytest.fixture
def configured(redis_server: RedisServer, tmp_path: Path, secret: str) -> Settings:
    return settings(redis_server.url, tmp_path, secret)


@pytest.fixture
def app(configured: Settings, store: redis.Redis) -> Flask:
    assert not store.keys("{*")
    return create_app(configured)


@contextmanager
def working(configured: Settings) -> Iterator[None]:
    before, plant = set(threading.enumerate()), Runtime(configured, "w1")
    with silence():
        plant.start()
        yield
        plant.stop()
        for thread in set(threading.enumerate()) - before:
            thread.join(10)


def ask(app: Flask, token: str = METRICS_TOKEN, accept: str = "") -> Any:
    headers = {"Authorization": f"Bearer {token}", "Accept": accept}
    return app.test_client().get("/metrics", headers=headers)


def scrape(app: Flask, token: str = METRICS_TOKEN) -> Samples:
    answer = ask(app, token)
    assert answer.status_code == 200
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in read(answer.text)
        for sample in family.samples
    }


def value(samples: Samples, name: str, **labels: str) -> float:
    return samples[f"sitemapd_{name}", frozenset(labels.items())]


def post(app: Flask, signed: Signer, *events: dict[str, str], ident: str = "msg_1") -> int:
    body = json.dumps(events).encode()
    client = app.test_client()
    answer = client.post("/v1/sites/demo/events", data=body, headers=signed(body, ident=ident))
    request_metrics.of(app).flush()
    return answer.status_code


def test_every_declared_metric_is_in_a_scrape_of_a_working_system_and_nothing_else(
    app: Flask, configured: Settings, store: redis.Redis, signed: Signer, until: Wait
) -> None:
    assert post(app, signed, PAGE) == 202
    assert post(app, signed, PAGE) == 200
    tally = CounterBuffer()  # what only other parts write
    tally.add("demo", "refused:stale")
    tally.add("demo", "notified:indexnow:too many")
    tally.add("demo", "publish_failed:full", 2)
    tally.flush(store)

    with working(configured):  # which stores what it counted with each sweep
        until(lambda: value(scrape(app), "files_written_total", site="demo") >= 2, "its counts")
        samples = scrape(app)
    named = {name for name, _ in samples}

    expected = set()
    for metric in METRICS:
        suffixes = ("_bucket", "_sum", "_count") if metric.kind == "histogram" else ("",)
        expected |= {metric.name + suffix for suffix in suffixes}
    assert named == expected
    assert value(samples, "up") == 1
    assert value(samples, "workers") == 1
    assert value(samples, "target_failing", site="demo", target="second") == 0
    assert value(samples, "events_accepted_total", site="demo") == 1
    assert value(samples, "events_accepted_total", site="other") == 0
    assert value(samples, "events_changed_total", site="demo") == 1
    assert value(samples, "event_to_published_seconds_count", site="demo") == 1
    assert value(samples, "answer_seconds_count", site="demo", answer="accepted") == 1
    assert value(samples, "answer_seconds_count", site="demo", answer="duplicate") == 1
    assert value(samples, "requests_refused_total", site="demo", code="stale") == 1
    assert value(samples, "publish_failures_total", site="demo", cause="full") == 2
    told = value(samples, "notifications_total", site="demo", engine="indexnow", outcome="too many")
    assert told == 1
    assert abs(value(samples, "clock_offset_seconds")) < 60
    assert value(samples, "redis_memory_bytes") > 100_000


def test_each_sample_has_the_declared_labels_with_declared_values(
    app: Flask, signed: Signer
) -> None:
    post(app, signed, PAGE)
    for family in read(ask(app).text):
        for sample in family.samples:
            metric = DECLARED.get(sample.name) or DECLARED[sample.name.rpartition("_")[0]]
            labels = {name: text for name, text in sample.labels.items() if name != "le"}
            assert set(labels) == {label.name for label in metric.labels}
            for label in metric.labels:
                assert not label.values or labels[label.name] in {*label.values, OTHER}


def test_what_is_not_declared_makes_no_label_grow(app: Flask, store: redis.Redis) -> None:
    """Whatever stands in Redis: 1,000 codes, engines and keys come to what the table allows."""
    tally = CounterBuffer()
    for n in range(1_000):
        for field in ("refused:c{}", "notified:e{}:done", "notified:x:o{}", "verified:k{}"):
            tally.add("demo", field.format(n))
    tally.add("demo", 'refused:"\n', 5)
    tally.flush(store)

    samples = scrape(app)

    for metric in METRICS:
        if not metric.field:
            continue
        for label in metric.labels:
            values = {
                dict(labels)[label.name]
                for name, labels in samples
                if name.startswith(metric.name) and label.name in dict(labels)
            }
            assert len(values) <= (len(label.values) + 1 if label.values else label.most)
    refused = sum(
        n for (name, _), n in samples.items() if name == "sitemapd_requests_refused_total"
    )
    assert refused == 1_005


def test_every_code_of_a_refusal_has_room() -> None:
    (code,) = DECLARED["sitemapd_requests_refused_total"].labels[1:]
    assert len(PROBLEMS) < code.most


def test_openmetrics_is_spoken_where_it_is_asked_for(app: Flask, signed: Signer) -> None:
    post(app, signed, PAGE)

    plain = ask(app)
    asked = ask(app, accept="application/openmetrics-text;version=1.0.0,text/plain;q=0.5")

    assert plain.content_type == "text/plain; version=0.0.4; charset=utf-8"
    assert asked.content_type.startswith("application/openmetrics-text; version=1.0.0")
    families = {family.name: family for family in read_openmetrics(asked.text)}
    assert families["sitemapd_event_to_published_seconds"].unit == "seconds"
    assert families["sitemapd_events_accepted"].type == "counter"


def test_a_token_of_a_site_shows_that_site_and_nobody_sees_anything_without_one(
    app: Flask, signed: Signer
) -> None:
    post(app, signed, PAGE)

    own = scrape(app, TOKENS["other"])

    assert {dict(labels).get("site", "other") for _, labels in own} == {"other"}
    unlabelled = {name for name, labels in own if not dict(labels).get("site")}
    assert unlabelled == {"sitemapd_up", "sitemapd_build_info"}
    assert app.test_client().get("/metrics").status_code == 401
    assert ask(app, "a-token-of-nobody").status_code == 401
    assert ask(app, "").status_code == 401


def test_an_unset_token_for_metrics_opens_nothing(configured: Settings, store: redis.Redis) -> None:
    app = create_app(Settings(redis_url=configured.redis_url, sites=configured.sites))

    assert not store.keys("{*")
    assert ask(app, "").status_code == 401
    assert ask(app, METRICS_TOKEN).status_code == 401


def test_a_dead_redis_is_a_value_and_no_error(
    fragile_redis: RedisServer, tmp_path: Path, secret: str
) -> None:
    app = create_app(settings(fragile_redis.url, tmp_path, secret))
    assert value(scrape(app), "up") == 1
    fragile_redis.kill()

    samples = scrape(app)

    assert value(samples, "up") == 0
    assert {name for name, _ in samples} == {"sitemapd_up", "sitemapd_build_info"}
    fragile_redis.start()


def test_counts_survive_a_redis_that_is_away(
    fragile_redis: RedisServer, tmp_path: Path, secret: str, signed: Signer, until: Wait
) -> None:
    app = create_app(settings(fragile_redis.url, tmp_path, secret))
    fragile_redis.kill()
    body = json.dumps([PAGE]).encode()
    assert (
        app.test_client().post("/v1/sites/demo/events", data=body, headers=signed(body)).status_code
        == 503
    )

    with pytest.raises(StoreError):
        request_metrics.of(app).flush()
    fragile_redis.start()

    request_metrics.of(app).flush()

    until(lambda: value(scrape(app), "up") == 1, "Redis to be asked again")
    assert value(scrape(app), "answer_seconds_count", site="demo", answer="unavailable") == 1


def test_each_secret_is_counted_by_its_fingerprint(
    app: Flask, configured: Settings, signed: Signer
) -> None:
    """RELIABILITY T4: whether anybody still signs with the old secret."""
    (known,) = (secret.fingerprint for secret in configured.sites["demo"].secrets)
    assert value(scrape(app), "requests_verified_total", site="demo", key=known) == 0

    post(app, signed, PAGE)

    assert value(scrape(app), "requests_verified_total", site="demo", key=known) == 1
    assert value(scrape(app), "requests_verified_total", site="demo", key="token") == 0


def test_pauses_and_what_waits_behind_them_are_seen(
    app: Flask, store: redis.Redis, signed: Signer
) -> None:
    Queues(store, "demo").pause(PUBLISH, "a test")
    post(app, signed, PAGE)

    samples = scrape(app)

    assert value(samples, "queue_paused", site="demo", queue="publish") == 1
    assert value(samples, "queue_paused", site="demo", queue="events") == 0
    assert value(samples, "events_waiting", site="demo") == 1
    assert value(samples, "events_oldest_seconds", site="demo") >= 0


def test_a_wake_up_that_was_lost_is_found_by_the_sweep_and_counted(
    app: Flask, configured: Settings, signed: Signer, until: Wait
) -> None:
    """Nothing here sends messages to the plant."""
    assert post(app, signed, PAGE) == 202
    until(lambda: value(scrape(app), "events_oldest_seconds", site="demo") > 1, "it to be late")

    with working(configured):
        until(lambda: value(scrape(app), "wakeups_lost_total", site="demo") == 1, "the sweep", 20)


def test_every_answer_is_one_of_the_declared(app: Flask, signed: Signer) -> None:
    client = app.test_client()
    body = json.dumps([PAGE]).encode()
    client.post("/v1/sites/demo/events", data=body, headers=signed(body, key=b"x" * 32))
    client.post("/v1/sites/nobody/events", data=body, headers=signed(body))
    old = signed(body, at=time.time() - 3600)
    client.post("/v1/sites/demo/events", data=body, headers=old)
    client.post("/v1/sites/demo/events", data=b"[", headers=signed(b"["))
    request_metrics.of(app).flush()

    samples = scrape(app)

    counts = {
        answer: value(samples, "answer_seconds_count", site="demo", answer=answer)
        for answer in ANSWERS
    }
    assert counts == dict.fromkeys(ANSWERS, 0) | {"unauthorized": 2, "refused": 1}
    assert value(samples, "answer_seconds_count", site="", answer="unauthorized") == 1
