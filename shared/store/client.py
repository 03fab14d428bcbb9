"""Connection to Redis: clients with bounded waits, Lua scripts, and the check of its settings."""

from __future__ import annotations

import re
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Any

import redis
from redis import exceptions
from redis.backoff import NoBackoff
from redis.retry import Retry

from shared.errors import NoWritesError, StoreDownError, StoreError, UnsafeStoreError

_INCLUDE = re.compile(r"^-- include ([a-z_/]+)$", re.MULTILINE)
Argument = bytes | str | int | float
OLDEST = (7, 0)
# Prefixes of error replies that are about the state of the server, not about the command.
_UNWELL = ("MISCONF", "OOM", "READONLY", "NOREPLICAS", "CLUSTERDOWN", "BUSY", "LOADING", "NOPERM")


def connect(url: str, timeout: float) -> redis.Redis:
    """Return a client that gives up after `timeout` seconds and never retries a command.

    redis-py's own default hangs for a minute on a frozen server, and a repeated XADD leaves two
    entries (DESIGN 9).
    """
    client: redis.Redis = redis.Redis.from_url(
        url,
        socket_timeout=timeout,
        socket_connect_timeout=min(timeout, 1.0),
        retry=Retry(NoBackoff(), 0),
        protocol=2,
    )
    # In a garbage cycle a socket may be collected before its connection, with a ResourceWarning.
    weakref.finalize(client, client.connection_pool.disconnect).atexit = False
    return client


@contextmanager
def answering() -> Iterator[None]:
    """Translate errors of redis-py, as `translated` does."""
    try:
        yield
    except redis.RedisError as error:
        raise translated(error) from error


def translated(error: redis.RedisError) -> StoreError:
    """Return the error to raise for one of redis-py: StoreDownError where a retry may succeed, else
    StoreError.
    """
    if isinstance(error, exceptions.ConnectionError | exceptions.TimeoutError):
        return StoreDownError(f"Redis does not answer: {error}")
    full = isinstance(error, exceptions.OutOfMemoryError | exceptions.ReadOnlyError)
    if full or str(error).startswith(_UNWELL):
        return NoWritesError(f"Redis refuses writes: {error}")
    return StoreError(f"Redis refused: {error}")


@lru_cache
def source(name: str) -> str:
    """Return the text of the Lua script `name`, with each `-- include PART` line resolved."""
    text = files("shared.store").joinpath(f"{name}.lua").read_text(encoding="utf-8")
    return _INCLUDE.sub(lambda found: source(found[1]), text)


@dataclass(slots=True)
class PipelinedScript:
    """Script sent in the same round trip as another: one flush of the append-only file for both.

    `reply` is its return value once it is `done`.
    """

    name: str
    keys: list[str]
    args: tuple[Argument, ...]
    done: bool = False
    reply: Any = None


class Scripts:
    """Lua scripts of one client, loaded again when the server has lost its script cache."""

    def __init__(self, client: redis.Redis) -> None:
        self._client = client
        self._scripts: dict[str, Any] = {}

    def __call__(self, name: str, keys: list[str], *args: Argument) -> Any:
        """Run script `name`. Raises StoreDownError or StoreError if it fails."""
        with answering():
            return self._script(name)(keys=keys, args=args)

    def run(self, follow_up: PipelinedScript) -> Any:
        """Run `follow_up` in a round trip of its own and return its reply."""
        follow_up.reply = self(follow_up.name, follow_up.keys, *follow_up.args)
        follow_up.done = True
        return follow_up.reply

    def along(self, follow_up: PipelinedScript, name: str, keys: list[str], *args: Argument) -> Any:
        """Run script `name`, then `follow_up` even if `name` failed; return the reply of `name`.

        After a server has lost its script cache, `follow_up` is not done.
        """
        with answering():
            pipe = self._client.pipeline(transaction=False)
            pipe.evalsha(self._script(name).sha, len(keys), *keys, *args)
            sha, keys_of, args_of = self._script(follow_up.name).sha, follow_up.keys, follow_up.args
            pipe.evalsha(sha, len(keys_of), *keys_of, *args_of)
            first, second = pipe.execute(raise_on_error=False)
            if not isinstance(second, Exception):
                follow_up.reply, follow_up.done = second, True
            if isinstance(first, exceptions.NoScriptError):
                return self(name, keys, *args)
            if isinstance(first, Exception):
                raise first
        return first

    def _script(self, name: str) -> Any:
        script = self._scripts.get(name)
        if script is None:
            script = self._scripts[name] = self._client.register_script(source(name))
        return script


def check_settings(client: redis.Redis) -> None:
    """Reject a server that may lose acknowledged events (RELIABILITY 5).

    Raises UnsafeStoreError with every reason; StoreDownError if the server does not answer.
    """
    with answering():
        info: Any = client.info("server")
        config: Any = client.config_get(
            "appendonly", "appendfsync", "maxmemory-policy", "no-appendfsync-on-rewrite"
        )
    version = str(info.get("valkey_version") or info["redis_version"])
    wrong = []
    if tuple(int(part) for part in version.split(".")[:2]) < OLDEST:
        wrong.append(f"version {version} is older than 7.0")
    for name, wanted in (
        ("appendonly", "yes"),
        ("appendfsync", "always"),
        ("maxmemory-policy", "noeviction"),
        ("no-appendfsync-on-rewrite", "no"),
    ):
        if config.get(name) != wanted:
            wrong.append(f"{name} is {config.get(name)!r}: set it to {wanted!r}")
    if wrong:
        raise UnsafeStoreError(*wrong)
