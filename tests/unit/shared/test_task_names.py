"""Messages only wake; the broker is the Redis that holds the state, in kombu's spelling."""

from __future__ import annotations

import pytest
from kombu.utils.url import parse_url

from shared import task_names


@pytest.mark.parametrize(
    ("redis_url", "transport", "host", "path"),
    [
        ("redis://cache.example:6380/2", "redis", "cache.example", "2"),
        ("rediss://cache.example/0", "rediss", "cache.example", "0"),
        ("unix:///run/sitemapd/redis.sock", "redis+socket", None, "run/sitemapd/redis.sock"),
    ],
)
def test_kombu_reads_the_address_of_the_state_as_its_broker(
    redis_url: str, transport: str, host: str | None, path: str
) -> None:
    parsed = parse_url(task_names.broker_url(redis_url))

    assert (transport, host) == (parsed["transport"], parsed["hostname"])
    assert path == parsed["virtual_host"]


def test_every_task_has_its_own_name_under_the_application() -> None:
    names = {
        task_names.WAKE, task_names.SWEEP, task_names.TIDY, task_names.REFRESH,
        task_names.RECONCILE, task_names.NOTIFY,
    }  # fmt: skip

    assert len(names) == 6
    assert all(name.startswith(f"{task_names.APP}.") for name in names)


@pytest.mark.parametrize("timeout", [0.2, 1.0, 10.0])
def test_a_broker_that_does_not_answer_is_given_up_within_the_timeout(timeout: float) -> None:
    options = task_names.broker_options(timeout)

    assert options["socket_timeout"] == timeout
    assert 0 < options["socket_connect_timeout"] <= timeout
