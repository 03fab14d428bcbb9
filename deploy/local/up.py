"""Run everything on one machine: `sitemapd up` (DESIGN 6)."""

from __future__ import annotations

import http.client
import ipaddress
import os
import secrets
import socket
import sys
import time
from collections.abc import Callable
from contextlib import closing
from hashlib import blake2b
from pathlib import Path

from deploy.local import first_config, login_link
from deploy.local.embedded_redis import EmbeddedServer
from deploy.local.processes import SERVED, Child, hold, mark, reap, replace
from deploy.local.supervisor import Signals, Supervisor
from shared.config.settings import FILE, Settings, load
from shared.errors import ConfigError, Fault, ServerStartError, StoreError
from shared.store.client import answering, connect
from shared.store.operations.worker_registry import HEARTBEAT
from shared.store.server_settings import check_settings
from shared.telemetry.logs import logger

CONSUMER = "local"

Command = list[str | Path]

_READY_S = 60.0
_DEATHS = 5
_TAIL = 2000
_LOOK_S = 0.05
_GRACE_S = {"web": 5.0, "worker": 45.0, "guard": 5.0}


def commands(config: Path, host: str, port: int) -> dict[str, Command]:
    """Return the child processes besides the store, by name, in the order in which they are
    started.

    No schedule: a worker runs by itself, in loops that are supervised, all that the schedule sends
    messages for. Its process cost 71 MB and a fifth of the CPU of a start (measured); it serves
    installations with several workers (`sitemapd run schedule`).
    """
    # -P: a folder named `worker` or `shared` in the working directory must not be imported
    python: Command = [sys.executable, "-P", "-m"]
    return {
        "worker": [*python, "worker.main", "--config", config],
        "web": [*python, "deploy.web.main", host, str(port)],
    }


def up(
    home: Path,
    http: str = "127.0.0.1:8080",
    *,
    behind_proxy: bool = False,
    hint: Callable[[Settings, str], str] = lambda _settings, _address: "",
    commands: Callable[[Path, str, int], dict[str, Command]] = commands,
) -> int:
    """Run everything with its data in `home` until SIGTERM, SIGINT or SIGHUP, then return 0.

    `http` is the address to listen on (port 0: a free one); an address that other machines can
    reach is refused unless a proxy buffers requests before it (RELIABILITY T12). An example that
    shows a secret and a link into the console are printed to terminals only (T30), followed by the
    text of `hint`. Raises ConfigError, ServerStartError, StoreError.
    """
    host, port = parse_listen(http, behind_proxy=behind_proxy)
    home = home.resolve()
    for folder in (home, home / "run", home / "logs"):
        folder.mkdir(mode=0o700 if folder != home else 0o755, parents=True, exist_ok=True)
    with hold(home / "lock"), Signals() as signals:
        if left := reap(runs(home)):
            logger("up").warning("orphans ended", children=left)
        port = _free_port(host, port)
        address = _address(host, port)
        replace(home / SERVED, address + "\n")
        config = first_config.write(home, address)
        settings = load(config)
        supervisor = Supervisor(home / "run" / "pids.json")
        try:
            named = commands(config, host, port)
            url = _begin(supervisor, signals, home, settings, named)
            say(f"{address} serves {home}")
            # It shows a secret, which must not get into the log of a service manager.
            if sys.stdout.isatty():
                say(first_config.first(settings, address))
                if settings.console.users:
                    say(_login(settings, url, address))
            say(hint(settings, address))
            _await_ready(supervisor, signals, (host, port), url)
            if not signals.stopping:
                say(f"ready {address}")
            while not signals.stopping:
                signals.wait(supervisor.pause())
                if not signals.stopping:  # the sender may have signalled the children as well
                    supervisor.tend()
        finally:
            supervisor.stop()
    return 0


def say(text: str) -> None:
    """Print a line for the user, or for the program that waits for `ready`."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def _login(settings: Settings, url: str, address: str) -> str:
    console = settings.console
    try:
        where = login_link.where(console, address)
    except ConfigError as error:
        return f"# {error}"
    with closing(connect(url, 2.0)) as client:
        link = login_link.make(console, client, where)
    return f"# the console, for ten minutes, once: {link}"


def _begin(
    supervisor: Supervisor,
    signals: Signals,
    home: Path,
    settings: Settings,
    named: dict[str, Command],
) -> str:
    """Start the store, then the other children; return the store's address."""
    run = f"{runs(home)}#{secrets.token_hex(8)}"
    logs = home / "logs"
    guard: Command = [
        sys.executable,
        "-P",
        "-m",
        "deploy.local.orphan_reaper",
        run,
        home / "run" / "pids.json",
    ]
    environment = dict(os.environ)
    supervisor.add(
        Child("guard", guard, logs / "guard.log", environment | mark(run, "guard"), pipe=True)
    )
    url = settings.redis_url
    if not url:
        server = EmbeddedServer(home, env=environment | mark(run, EmbeddedServer.name))
        server.start(cancelled=lambda: signals.stopping)
        supervisor.add(server, started=True)
        url = server.url
    if signals.stopping:
        return url
    with closing(connect(url, 2.0)) as client:
        if not settings.allow_loss:
            check_settings(client)
        with answering():
            client.delete(HEARTBEAT + CONSUMER)
    environment |= {
        "SITEMAPD_CONFIG": str(home / FILE),
        "SITEMAPD_REDIS_URL": url,
        "SITEMAPD_CONSUMER": CONSUMER,
    }
    for name, command in named.items():
        env = environment | mark(run, name)
        supervisor.add(
            Child(name, command, logs / f"{name}.log", env, grace=_GRACE_S.get(name, 5.0))
        )
    return url


def runs(home: Path) -> str:
    """Return the prefix of the marks of all runs on `home`, an absolute path."""
    return blake2b(os.fsencode(home), digest_size=12).hexdigest()


def _await_ready(
    supervisor: Supervisor, signals: Signals, where: tuple[str, int], url: str
) -> None:
    """Return when requests are answered and a worker sends heartbeats, or a signal stops.

    Raises ServerStartError after _READY_S seconds, or if a child ends _DEATHS times.
    """
    deadline = time.monotonic() + _READY_S
    with closing(connect(url, 1.0)) as client:
        while not signals.stopping:
            try:
                with answering():
                    worker = bool(client.exists(HEARTBEAT + CONSUMER))
            except StoreError:
                worker = False
            if worker and _web_ready(*where):
                return
            if signals.stopping:
                return
            supervisor.tend()
            if dying := supervisor.dying(_DEATHS):
                said = dying.output()[-_TAIL:]
                raise ServerStartError(f"{dying.name} ended {_DEATHS} times at start:\n{said}")
            if time.monotonic() > deadline:
                silent = "the web server" if worker else "the worker"
                raise ServerStartError(f"{silent} was not ready in {_READY_S:.0f} s: see logs/")
            signals.wait(_LOOK_S)


def _web_ready(host: str, port: int) -> bool:
    connection = http.client.HTTPConnection(_reachable(host), port, timeout=2.0)
    with closing(connection):
        try:
            # Without `accepting` it would wait for the repair of files outside sitemapd's control.
            connection.request("GET", "/readyz?accepting")
            return connection.getresponse().status == http.HTTPStatus.OK
        except (OSError, http.client.HTTPException):
            return False


def parse_listen(text: str, *, behind_proxy: bool) -> tuple[str, int]:
    """Return host and port of HOST:PORT. Raises ConfigError if other machines can reach it and no
    proxy is in front.
    """
    host, _, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not host or not port.isascii() or not port.isdigit() or int(port) > 65_535:
        raise ConfigError(Fault("http", "config", f"{text!r} is no HOST:PORT"))
    try:
        loopback = ipaddress.ip_address(host).is_loopback
    except ValueError:
        loopback = host == "localhost"
    if not loopback and not behind_proxy:
        detail = (
            f"{host} can be reached by others, without TLS and from any number of connections: "
            "listen on 127.0.0.1, or put nginx in front and say --behind-proxy"
        )
        raise ConfigError(Fault("http", "RELIABILITY T12", detail))
    return host, int(port)


def _free_port(host: str, port: int) -> int:
    """Return `port`, or for 0 a free one. Raises ServerStartError if a process listens there
    already.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise ServerStartError(f"cannot listen on {host}:{port}: {error.strerror}") from error
        return int(probe.getsockname()[1])


def _reachable(host: str) -> str:
    """Return `host`, or the loopback address if `host` means every address."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    if not address.is_unspecified:
        return host
    return "127.0.0.1" if address.version == 4 else "::1"


def _address(host: str, port: int) -> str:
    host = _reachable(host)
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
