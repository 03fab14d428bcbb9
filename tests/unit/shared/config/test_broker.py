"""The broker of Celery: which addresses it has, and how kombu reads them."""

from __future__ import annotations

from typing import Any

import pytest
from kombu import Connection
from kombu.utils.url import parse_url

from shared.config.broker import celery_settings
from tests.unit.configured import SITE, Load, faults

STATE = "redis://127.0.0.1:6379/0"


@pytest.mark.parametrize(
    "value",
    [
        "", "redis://h:6379/1", "unix:///run/redis.sock?db=2", "redis+sentinel://h1,h2/m/1",
        "amqp://user:pw@h:5672/vhost", "amqps://h?ssl_ca_certs=/ca.pem&ssl_certfile=/c.pem",
    ],
)  # fmt: skip
def test_every_address_of_a_broker_is_taken_as_it_is(load: Load, value: str) -> None:
    assert load(f'redis_url = "{STATE}"\nbroker_url = "{value}"\n{SITE}').broker_url == value


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("redis+cluster://h1,h2", "must not be a cluster"),
        ("sentinel://h1:26379", "must be redis+sentinel://"),
        ("redis+sentinel://h1", "must name the master"),
        ("amqp://", "must be amqp://"),
        ("amqp://h:0/", "must be amqp://"),
        ("amqp://h?heartbeat=1", "of amqps:// only"),
        ("sqs://", "must be amqp://"),
        ("memory://", "must be amqp://"),
    ],
)
def test_what_is_no_broker_is_refused_with_the_remedy(load: Load, value: str, said: str) -> None:
    found = faults(load, f'redis_url = "{STATE}"\nbroker_url = "{value}"\n{SITE}')

    assert said in found["broker_url"]


def test_a_cluster_needs_a_broker_of_its_own(load: Load) -> None:
    cluster = f'redis_url = "redis+cluster://h1,h2"\n{SITE}'

    assert "Celery cannot use a cluster" in faults(load, cluster)["broker_url"]
    assert load(f'broker_url = "amqp://h//"\n{cluster}').broker_url == "amqp://h//"


def test_sentinels_are_asked_for_the_master_of_the_broker() -> None:
    url = "rediss+sentinel://u:p%40w@h1,h2:1/m/3?sentinel_password=s&ssl_ca_certs=/ca.pem"

    found = celery_settings(url, "", 5.0)

    with Connection(
        found["broker_url"], transport_options=found["broker_transport_options"],
        ssl=found["broker_use_ssl"],
    ) as connection:  # fmt: skip
        assert connection.alt == ["sentinel://u:p%40w@h1:26379/3", "sentinel://u:p%40w@h2:1/3"]
        assert (connection.userid, connection.password) == ("u", "p@w")
        assert connection.virtual_host == "3"
    options: Any = found["broker_transport_options"]
    assert options["master_name"] == "m"
    assert options["sentinel_kwargs"] == {
        "socket_timeout": 1.0, "socket_connect_timeout": 1.0, "password": "s", "ssl": True,
        "ssl_cert_reqs": "required", "ssl_ca_certs": "/ca.pem",
    }  # fmt: skip


def test_the_files_of_tls_are_no_part_of_the_address_of_rabbitmq() -> None:
    found = celery_settings(STATE, "amqps://u:p@h/v?ssl_ca_certs=/ca&ssl_certfile=/c", 5.0)

    assert parse_url(found["broker_url"])["virtual_host"] == "v"
    assert found["broker_use_ssl"] == {"server_hostname": "h", "ca_certs": "/ca", "certfile": "/c"}
