"""The commands `run web|worker|schedule`: one part each, in the foreground, for a supervisor.

systemd, a container engine or another supervisor starts and restarts the parts, and runs Redis and
the web server in front. `sitemapd up` runs the same parts with a supervisor of its own.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Annotated

import typer

from deploy.cli.examples import examples
from deploy.cli.homes import find_home
from deploy.cli.output import HomeOption, JsonOption, print_json
from deploy.local.listen_address import parse_listen
from deploy.local.own_module import own_module
from deploy.local.supervisor import Signals
from shared.config.settings import FILE, Settings, load
from shared.errors import ConfigError, Fault, StoreDownError, StoreError
from shared.store.client import answering
from shared.store.connection import connect
from shared.store.operations.worker_registry import HEARTBEAT, consumer_name
from shared.store.server_settings import check_settings
from shared.telemetry.logs import configure, drain, logger

SOCKET = "unix:"

_CHECK_TIMEOUT_S = 2.0
_RETRY_S = 1.0

NameOption = Annotated[
    str | None,
    typer.Option(
        "--name",
        help="name of the worker, unique and kept across restarts [env SITEMAPD_CONSUMER; else "
        "the host's name]",
    ),
]

LinesOption = Annotated[bool, typer.Option("--json", help="log lines as JSON, also on a terminal")]

app = typer.Typer(
    help="Run one part in the foreground, for systemd, containers and other supervisors.",
    no_args_is_help=True,
)


@app.command()
@examples(
    "sitemapd run web",
    "sitemapd run web --listen unix:/run/sitemapd/web.sock --processes 2",
)
def web(
    listen: Annotated[
        str, typer.Option("--listen", help="address to listen on: HOST:PORT or unix:PATH")
    ] = "127.0.0.1:8080",
    processes: Annotated[int, typer.Option(min=1, max=64, help="number of web processes")] = 1,
    behind_proxy: Annotated[
        bool,
        typer.Option(
            "--behind-proxy", help="allow an address other than loopback, for use behind a proxy"
        ),
    ] = False,
    home: HomeOption = None,
    as_json: LinesOption = False,
) -> None:
    """Serve the webhook until SIGTERM; the web server in front of it serves the published files.

    Starts without Redis as well, and answers 503 until Redis answers.
    """
    from deploy.web.server import serve
    from webhook.wsgi import app as webhook

    config, _ = _configured(home)
    where: Path | tuple[str, int] = (
        Path(listen.removeprefix(SOCKET))
        if listen.startswith(SOCKET)
        else parse_listen(listen, behind_proxy=behind_proxy)
    )
    os.environ["SITEMAPD_CONFIG"] = str(config)
    _log_to_stdout(as_json=as_json)
    serve(webhook, where, processes=processes)


@app.command()
@examples("sitemapd run worker", "sitemapd run worker --name w1 --threads 8")
def worker(
    name: NameOption = None,
    threads: Annotated[int, typer.Option(min=1, help="number of sites processed in parallel")] = 4,
    reconcile: Annotated[
        bool, typer.Option(help="run the reconciles that resyncs and reconcile_hours request")
    ] = True,
    notify: Annotated[bool, typer.Option(help="notify search engines of published changes")] = True,
    host: Annotated[
        str,
        typer.Option(
            "--host", help="name of this host in targets [env SITEMAPD_HOST; else hostname]"
        ),
    ] = "",
    home: HomeOption = None,
    as_json: LinesOption = False,
) -> None:
    """Apply events and publish files until SIGTERM; work in progress is finished first."""
    config, settings = _configured(home)
    if name:
        os.environ["SITEMAPD_CONSUMER"] = name
    _log_to_stdout(as_json=as_json)
    _await_redis(settings)
    leave = (
        ["--no-reconcile"] * (not reconcile) + ["--no-notify"] * (not notify) + ["--json"] * as_json
    )
    leave += ["--host", host] if host else []
    _become("worker.main", "--config", config, "--threads", str(threads), *leave)


@app.command()
@examples("sitemapd run schedule", "sitemapd run schedule --home /etc/sitemapd")
def schedule(home: HomeOption = None, as_json: LinesOption = False) -> None:
    """Send the wake-ups that are due, until SIGTERM; running two at once is harmless."""
    config, settings = _configured(home)
    _log_to_stdout(as_json=as_json)
    _await_redis(settings)
    _become("worker.main", "--config", config, "--schedule", *["--json"] * as_json)


@app.command()
@examples("sitemapd run alive", "sitemapd run alive --name w1")
def alive(name: NameOption = None, home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Exit with 0 if the worker of that name has sent a heartbeat within the last seconds, else
    with 1.
    """
    _, settings = _configured(home)
    who = name or consumer_name()
    with connect(settings.redis_url, _CHECK_TIMEOUT_S) as client, answering():
        heard = client.exists(HEARTBEAT + who)
    if as_json:
        print_json({"worker": who, "alive": bool(heard)})
        raise typer.Exit(0 if heard else 1)
    if not heard:
        raise StoreError(f"the worker {who} has sent no heartbeat")


def _configured(home: Path | None) -> tuple[Path, Settings]:
    """Return the configuration file and its settings. Raises ConfigError without `redis_url` or
    without sites.
    """
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # until the part itself listens to it
    config = (find_home(home) / FILE).resolve()
    settings = load(config)
    if not settings.redis_url:
        detail = (
            "is empty, and the embedded server belongs to `sitemapd up`: name a running Redis "
            "here, or in SITEMAPD_REDIS_URL"
        )
        raise ConfigError(Fault("redis_url", "config", detail))
    if not settings.sites:
        raise ConfigError(Fault("sites", "config", "no site is configured"))
    return config, settings


def _log_to_stdout(*, as_json: bool) -> None:
    """Send every line from here on, tracebacks of libraries included, to one stream in order; JSON
    unless that is a terminal, and there with `as_json`.
    """
    sys.stderr.flush()
    os.dup2(sys.stdout.fileno(), sys.stderr.fileno())
    configure(streams=True, json_lines=as_json or None)


def _await_redis(settings: Settings) -> None:
    """Return once Redis answers. Raises UnsafeStoreError if it may lose events.

    A stop signal ends the process here, as no work has begun.
    """
    log = logger("run")
    with connect(settings.redis_url, _CHECK_TIMEOUT_S) as client, Signals() as signals:
        while not signals.stopping:
            try:
                if not settings.allow_loss:
                    check_settings(client)
                with answering():
                    client.ping()
            except StoreDownError as error:
                log.warning("waiting for Redis", reason=str(error))
                signals.wait(_RETRY_S)
                continue
            return
    raise typer.Exit


def _become(module: str, *arguments: str | Path) -> None:
    """Replace this process by `module`, which then receives its signals."""
    drain()
    command = [str(part) for part in own_module(module, *arguments)]
    os.execv(sys.executable, command)  # noqa: S606  # the very point
