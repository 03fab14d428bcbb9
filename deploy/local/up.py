"""Run everything on one machine: `sitemapd up` (DESIGN 6)."""

from __future__ import annotations

import http.client
import os
import secrets
import signal
import sys
import time
from collections.abc import Callable
from contextlib import closing
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

from deploy.local.embedded_redis import EmbeddedServer
from deploy.local.first_run import first_config
from deploy.local.first_run.first_page import list_home_page
from deploy.local.listen_address import address_of, free_port, parse_listen, reachable
from deploy.local.log_file import LogBounds
from deploy.local.own_module import own_module
from deploy.local.processes import SERVED, Child, hold, mark, reap, replace
from deploy.local.supervisor import Signals, Supervisor
from shared.config.settings import FILE, Settings, load
from shared.errors import ServerStartError, StoreError
from shared.store.client import answering
from shared.store.connection import connect
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
    return {
        "worker": own_module("worker.main", "--config", config),
        "web": own_module("deploy.web.main", host, str(port)),
    }


class Ready(NamedTuple):
    """Installation that `up` serves; `store` is the address of its Redis."""

    home: Path
    settings: Settings
    address: str
    store: str


def say_serving(now: Ready) -> None:
    """Say that everything is starting, in a line for programs."""
    _say(f"{now.address} serves {now.home}")


def say_ready(now: Ready) -> None:
    """Say that everything is ready, in the line for which programs wait."""
    _say(f"ready {now.address}")


def up(
    home: Path,
    http: str = "127.0.0.1:8080",
    *,
    behind_proxy: bool = False,
    first_page: bool = False,
    serving: Callable[[Ready], None] = say_serving,
    ready: Callable[[Ready], None] = say_ready,
    commands: Callable[[Path, str, int], dict[str, Command]] = commands,
    bounds: LogBounds = LogBounds(),  # noqa: B008  # immutable
) -> int:
    """Run everything with its data in `home` until SIGTERM, SIGINT or a closed terminal, then
    return 0. Any other SIGHUP lets web and worker read their configuration.

    `http` is the address to listen on (port 0: a free one); an address that other machines can
    reach is refused unless a proxy buffers requests before it (RELIABILITY T12). With `first_page`,
    the home page of a demo site that begins here is listed, so that it has a sitemap. `serving` is
    called when everything was started, `ready` when it answers. `bounds`: those of
    each child's log. Raises ConfigError, ServerStartError, StoreError.
    """
    host, port = parse_listen(http, behind_proxy=behind_proxy)
    home = home.resolve()
    for folder in (home, home / "run", home / "logs"):
        folder.mkdir(mode=0o700 if folder != home else 0o755, parents=True, exist_ok=True)
    with hold(home / "lock"), Signals(reloads=True) as signals:
        if left := reap(runs(home)):
            logger("up").warning("orphans ended", children=left)
        port = free_port(host, port)
        address = address_of(host, port)
        replace(home / SERVED, address + "\n")
        first_page &= not (home / FILE).exists()
        config = first_config.write(home, address)
        settings = load(config)
        supervisor = Supervisor(home / "run" / "pids.json")
        try:
            named = commands(config, host, port)
            store = _begin(supervisor, signals, home, settings, named, bounds)
            now = Ready(home, settings, address, store)
            serving(now)
            _await_ready(supervisor, signals, (host, port), now.store)
            if first_page and not signals.stopping:
                list_home_page(settings, first_config.SITE, (host, port), signals)
            if not signals.stopping:
                ready(now)
            while not signals.stopping:
                signals.wait(supervisor.pause())
                if signals.reload:
                    signals.reload = False
                    for name in named:
                        supervisor.signal(name, signal.SIGHUP)
                if not signals.stopping:  # the sender may have signalled the children as well
                    supervisor.tend()
        finally:
            supervisor.stop()
    return 0


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def _begin(
    supervisor: Supervisor,
    signals: Signals,
    home: Path,
    settings: Settings,
    named: dict[str, Command],
    bounds: LogBounds,
) -> str:
    """Start the store, then the other children; return the store's address."""
    run = f"{runs(home)}#{secrets.token_hex(8)}"
    logs = home / "logs"
    guard = own_module("deploy.local.orphan_reaper", run, home / "run" / "pids.json")
    environment = dict(os.environ)
    supervisor.add(
        Child("guard", guard, logs / "guard.log", environment | mark(run, "guard"), pipe=True)
    )
    url = settings.redis_url
    if not url:
        env = environment | mark(run, EmbeddedServer.name)
        server = EmbeddedServer(home, env=env, bounds=bounds)
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
        grace = _GRACE_S.get(name, 5.0)
        log = logs / f"{name}.log"
        supervisor.add(Child(name, command, log, env, grace=grace, bounds=bounds))
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
    connection = http.client.HTTPConnection(reachable(host), port, timeout=2.0)
    with closing(connection):
        try:
            # Without `accepting` it would wait for the repair of files outside sitemapd's control.
            connection.request("GET", "/readyz?accepting")
            return connection.getresponse().status == http.HTTPStatus.OK
        except (OSError, http.client.HTTPException):
            return False
