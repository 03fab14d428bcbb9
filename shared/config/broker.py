"""The broker of Celery's messages, in Celery's settings: the Redis of the state, or one of its own.

Messages only wake: those that a broker loses cost time until the next sweep, and no event.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qsl, urlsplit

from shared import task_names
from shared.config import redis_address
from shared.config.redis_address import RedisAddress

_AMQP = ("amqp", "amqps")
_TLS = {"ssl_ca_certs": "ca_certs", "ssl_certfile": "certfile", "ssl_keyfile": "keyfile"}
_FORMS = (
    "must be amqp://USER:PASSWORD@HOST:5672/VHOST (RabbitMQ; with TLS amqps://) or the address of "
    "a Redis that is no cluster, in the forms of redis_url"
)


def check(text: str) -> str:
    """Check the address of a broker."""
    if urlsplit(text).scheme in _AMQP:
        return _amqp(text)
    if text.startswith(("sentinel://", "redis-sentinel://")):
        raise ValueError("must be redis+sentinel://HOST:26379,HOST:26379/MASTER/0, as in redis_url")
    try:
        redis_address.check(text)
    except ValueError as error:
        raise ValueError(str(error).replace(redis_address.FORMS, _FORMS)) from None
    if text and redis_address.parse(text).kind == "cluster":
        raise ValueError("must not be a cluster, which Celery cannot use as its broker; " + _FORMS)
    return text


def _amqp(text: str) -> str:
    parts = urlsplit(text)
    try:
        named = parts.hostname and parts.port != 0 and "," not in parts.netloc
    except ValueError:
        named = False
    if not named or not text.isprintable() or " " in text or parts.fragment:
        raise ValueError(_FORMS)
    names = [name for name, _ in parse_qsl(parts.query, keep_blank_values=True)]
    if names and (parts.scheme != "amqps" or set(names) - _TLS.keys()):
        raise ValueError(f"supported as options: {', '.join(_TLS)}, of amqps:// only")
    return text


def needed(redis_url: str, broker_url: str) -> str | None:
    """Return the fault of a missing broker; None if there is none."""
    if broker_url or not redis_url or redis_address.parse(redis_url).kind != "cluster":
        return None
    return "is needed, as Celery cannot use a cluster as its broker: " + _FORMS


def celery_settings(redis_url: str, broker_url: str, timeout: float) -> dict[str, Any]:
    """Return Celery's settings of its broker, which is waited for `timeout` seconds at most."""
    url = broker_url or redis_url
    if urlsplit(url).scheme in _AMQP:
        return _rabbitmq(url)
    options = task_names.broker_options(timeout)
    address = redis_address.parse(url)
    if address.kind != "sentinel":
        return {"broker_url": task_names.broker_url(url), "broker_transport_options": options}
    return _sentinels(address, options, min(timeout, 1.0))


def _sentinels(address: RedisAddress, options: dict[str, object], timeout: float) -> dict[str, Any]:
    parts = urlsplit(address.plain)
    user, at, _ = parts.netloc.rpartition("@")
    places = [f"[{name}]:{port}" if ":" in name else f"{name}:{port}"
              for name, port in address.hosts]  # fmt: skip
    urls = [f"sentinel://{user}{at}{place}{parts.path}" for place in places]
    tls = dict(each for each in parse_qsl(parts.query) if each[0].startswith("ssl_"))
    tls = {"ssl_cert_reqs": "required"} | tls if address.tls else {}
    asked: dict[str, Any] = {"socket_timeout": timeout, "socket_connect_timeout": timeout}
    asked |= address.sentinel_options | tls | ({"ssl": True} if tls else {})
    return {
        "broker_url": ";".join(urls),
        "broker_transport_options": {
            **options, "master_name": address.master, "sentinel_kwargs": asked,
        },
        "broker_use_ssl": tls or None,
    }  # fmt: skip


def _rabbitmq(url: str) -> dict[str, Any]:
    parts = urlsplit(url)
    given = {_TLS[name]: value for name, value in parse_qsl(parts.query)}
    found: dict[str, Any] = {"broker_url": parts._replace(query="").geturl()}
    if given:
        found["broker_use_ssl"] = {"server_hostname": parts.hostname} | given
    return found
