"""The loop of a worker: one worker reads a site, one failing engine is shown, others go on."""

from __future__ import annotations

from typing import Any

import pytest

from shared.config.settings import Settings
from shared.store.keys import keys_of
from shared.store.leases import held_lease
from tests.integration.conftest import RedisServer
from tests.integration.logs import silence
from tests.integration.readback.reading import ReadingRig, bing_table, yandex_table
from tests.integration.webmasters import Answer, Bing, Yandex
from worker.readback.read_back_service import ReadbackService


@pytest.fixture
def tables(bing: Bing, yandex: Yandex) -> dict[str, Any]:
    return {"bing": bing_table(bing.url), "yandex": yandex_table(yandex.url)}


@pytest.fixture
def service(site: ReadingRig, redis_server: RedisServer) -> ReadbackService:
    settings = Settings(redis_url=redis_server.url, sites={site.rig.name: site.rig.site})
    return ReadbackService(settings, site.rig.client, "w1", clock=lambda: site.now)


def test_f30_one_engine_that_fails_is_shown_and_the_other_is_read(
    site: ReadingRig, service: ReadbackService, bing: Bing, yandex: Yandex
) -> None:
    bing.down = Answer(403, b"no")
    with silence():
        service.look()
        site.publish("a")
        site.later(31)
        service.look()  # its back-off lasts
    troubles = service.loop.troubles()

    assert [(each.site, each.part, each.state) for each in troubles] == [
        ("demo", "bing", "failing")
    ]
    assert "403" in troubles[0].reason or "no" in troubles[0].reason
    assert yandex.counted["sitemaps"] == 1
    assert site.reading.chains.count() == 1


def test_a_site_that_another_worker_reads_is_left_to_it(
    site: ReadingRig, service: ReadbackService, bing: Bing
) -> None:
    with held_lease(site.rig.client, keys_of("demo").readback_lease, "w2") as other:
        assert other is not None
        service.look()
        assert bing.calls == []
    service.look()

    assert len(bing.calls) == 1


def test_a_quiet_worker_asks_nobody(
    site: ReadingRig, redis_server: RedisServer, bing: Bing
) -> None:
    settings = Settings(redis_url=redis_server.url, sites={site.rig.name: site.rig.site})
    ReadbackService(settings, site.rig.client, "w1", lambda: True).look()

    assert bing.calls == []


def test_without_an_engine_there_is_no_thread_and_with_the_first_one_it_starts(
    site: ReadingRig, redis_server: RedisServer, bing: Bing
) -> None:
    plain = Settings(redis_url=redis_server.url)
    service = ReadbackService(plain, site.rig.client, "w1")
    service.start()
    assert not service.loop.started
    service.prepare(Settings(redis_url=redis_server.url, sites={"demo": site.rig.site}))()
    try:
        assert service.loop.started
        assert bing.connected(30)
    finally:
        service.stop()
        service.loop.join(30)
