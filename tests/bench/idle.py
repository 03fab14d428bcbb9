"""A service that has nothing to do, and one of many sites: processor, memory, pages for people."""

from __future__ import annotations

import http.client
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

from redis.connection import AbstractConnection

from deploy.local.redis_socket import socket_url
from shared.config.settings import FILE, Settings, load
from shared.events.event import Event
from shared.store.client import KeptConnections
from shared.store.connection import connect
from shared.store.inbox.inbox import Inbox
from shared.store.operations.sessions import Sessions
from tests.bench.corpus import Corpus
from tests.bench.report import Figure, Report, compared
from tests.bench.scale import Scale
from tests.bench.service import Service, post, until
from webhook.app import create_app

TOKEN = "a-token-that-shows-all-metrics"
ROUNDS = 15
MOST_CPU, MOST_MB = 1.0, 250


class Quiet(Service):
    """`sitemapd up` with its first configuration; `grow` starts it again with many sites."""

    def grow(self, many: int) -> None:
        """Have `many` more sites, each with a page."""
        self.stop()
        path = self.home / FILE
        text = path.read_text(encoding="utf-8")
        text = text.replace('# metrics_token = ""', f'metrics_token = "{TOKEN}"')
        names = [f"s{number}" for number in range(many)]
        path.write_text(
            text
            + "".join(
                f'[sites.{name}]\nbase_url = "https://{name}.example.com"\n'
                f'web_root = "roots/{name}"\ntokens = ["{TOKEN}"]\n'
                for name in names
            ),
            encoding="utf-8",
        )
        self._process = self._start()
        with connect(socket_url(self.home), 60.0) as client:
            for name in names:
                Inbox(client, name).accept([Event("upsert", f"https://{name}.example.com/a")])
        roots = self.home / "roots"
        until(lambda: len(list(roots.glob("*/sitemap.xml"))) == many, 0.5)

    def settings(self) -> Settings:
        """Its configuration."""
        return load(self.home / FILE)

    def processes(self) -> dict[int, str]:
        """Process id and name of all its processes."""
        parents = {
            int(stat.parent.name): int(stat.read_text().rpartition(")")[2].split()[1])
            for stat in Path("/proc").glob("[0-9]*/stat")
        }
        found, new = set[int](), {self._process.pid}
        while new:
            found |= new
            new = {pid for pid, parent in parents.items() if parent in new}
        return {pid: _name(pid) for pid in sorted(found)}


def idle(report: Report, corpus: Corpus, scale: Scale) -> None:
    """Measure `sitemapd up` at rest with one site, then with `scale.many`, and its pages."""
    with TemporaryDirectory(prefix="sitemapd-bench-") as folder:
        running = Quiet(Path(folder))
        try:
            first = next(iter(corpus.pages(1)))
            post(running.connect(), running.signed([first], "first"))
            until(lambda: running.listed() == 1)
            rest(report, running, scale, "1 site", promised=True)
            running.grow(scale.many)
            rest(report, running, scale, f"{scale.many} sites", promised=False)
            pages(report, running, scale)
        finally:
            running.stop()


def rest(report: Report, running: Quiet, scale: Scale, what: str, *, promised: bool) -> None:
    """CPU and memory of all processes together, for `scale.rest_s` seconds without any event."""
    processes = running.processes()
    before, began = _cpu_ns(processes), time.monotonic()
    until(lambda: time.monotonic() > began + scale.rest_s, 0.5)
    after, lasted = _cpu_ns(processes), time.monotonic() - began
    percent = {
        pid: (sum(after[pid].values()) - sum(before[pid].values())) / lasted / 1e7
        for pid in processes
    }
    memory = {pid: _pss_mb(pid) for pid in processes}
    _shares(report, f"CPU of an idle `up` of {what}", "%", processes, percent, promised * MOST_CPU)
    _shares(report, f"memory (PSS) of an idle `up` of {what}", "MB", processes, memory,
            promised * MOST_MB)  # fmt: skip


def _shares(
    report: Report, what: str, unit: str, processes: Mapping[int, str],
    values: Mapping[int, float], most: float,
) -> None:  # fmt: skip
    """One row for all processes, with the share of each."""
    each = ", ".join(f"{name} {values[pid]:.2g}" for pid, name in processes.items())
    whole = sum(values.values())
    hold, holds = (f"<= {most:g}", whole <= most) if most else ("", None)
    report.add(Figure(what, unit, whole, against=f"of these: {each}", hold=hold, holds=holds))


def pages(report: Report, running: Quiet, scale: Scale) -> None:
    """Time and round trips of the overview of the console and of /metrics, over HTTP."""
    settings, connection = running.settings(), running.connect()
    url = socket_url(running.home)
    with connect(url, 60.0) as client:
        console = settings.console.users["admin"]
        cookie = Sessions(client).begin("admin", console.stamp, 3_600)
        app = create_app(settings.model_copy(update={"redis_url": url}), client).test_client()
        app.set_cookie("sitemapd", cookie, domain="127.0.0.1", path="/admin")
        for path, headers in (
            ("/admin/", {"Cookie": f"sitemapd={cookie}"}),
            ("/metrics", {"Authorization": f"Bearer {TOKEN}"}),
        ):
            pairs = [
                (_get_ms(connection, path, headers), _get_ms(connection, "/healthz", {}))
                for _ in range(min(ROUNDS, scale.rounds))
            ]
            name = f"{path} of {scale.many} sites"
            report.add(compared(name, "ms", pairs[1:], "/healthz of the same server"))
            with counting() as counts:
                given = {k: v for k, v in headers.items() if k != "Cookie"}
                answer = app.get(path, base_url="http://127.0.0.1", headers=given)
            assert answer.status_code == http.client.OK
            for kind in ("round trips to Redis", "commands to Redis"):
                report.add(Figure(f"{kind} of {path} of {scale.many} sites", "", counts[kind]))


@contextmanager
def counting() -> Iterator[Counter[str]]:
    """Count what this process sends to Redis."""
    counts = Counter[str]()
    send, pack = AbstractConnection.send_packed_command, AbstractConnection.pack_commands
    exchange = KeptConnections.exchange

    def sent(self: AbstractConnection, *args: Any, **named: Any) -> Any:
        counts["round trips to Redis"] += 1
        counts["commands to Redis"] += 1
        return send(self, *args, **named)

    def packed(self: AbstractConnection, commands: Iterable[Any]) -> Any:
        some = list(commands)
        counts["commands to Redis"] += len(some) - 1
        return pack(self, some)

    def exchanged(self: KeptConnections, *commands: Any) -> Any:
        counts["commands to Redis"] += len(commands) - 1
        return exchange(self, *commands)

    with (
        patch.object(AbstractConnection, "send_packed_command", sent),
        patch.object(AbstractConnection, "pack_commands", packed),
        patch.object(KeptConnections, "exchange", exchanged),
    ):
        yield counts


def _get_ms(connection: http.client.HTTPConnection, path: str, headers: Mapping[str, str]) -> float:
    began = time.perf_counter()
    connection.request("GET", path, headers=dict(headers))
    answer = connection.getresponse()
    answer.read()
    assert answer.status == http.client.OK, f"{path}: {answer.status}"
    return (time.perf_counter() - began) * 1e3


def _name(pid: int) -> str:
    """The part of `up` that a process is."""
    said = Path(f"/proc/{pid}/cmdline").read_text(encoding="utf-8")
    names = {"worker.main": "worker", "deploy.web": "web", "server": "Redis", "orphan": "guard"}
    return next((name for part, name in names.items() if part in said), "up")


def _cpu_ns(processes: Iterable[int]) -> dict[int, dict[str, int]]:
    """Nanoseconds on a processor so far, by process and thread."""
    return {
        pid: {
            task.name: int((task / "schedstat").read_text().split()[0])
            for task in Path(f"/proc/{pid}/task").iterdir()
        }
        for pid in processes
    }


def _pss_mb(pid: int) -> float:
    """Megabytes of a process; of a page shared by several its part."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="utf-8").splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024 / 1e6
    raise AssertionError(f"{pid} has no Pss")
