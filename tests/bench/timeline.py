"""Where the time of one event goes: each call to Redis and to the system, and Python between them.

The steps are those of a site at rest, each a median of many events.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple
from unittest.mock import patch

import redis
from redis.connection import AbstractConnection
from rich.console import Console
from rich.table import Table

from shared import store
from shared.events.event import Event
from shared.store.client import source
from tests.bench.bed import Bed, bed, server
from tests.bench.corpus import Corpus
from tests.bench.scale import Scale

CALLS = ("stat", "open", "write", "writev", "pwrite", "fchmod", "utime", "posix_fadvise", "fsync",
         "rename", "close")  # fmt: skip
PYTHON = "Python"
SCRIPTS = [*Path(store.__file__).parent.glob("*/*.lua")]


class Step(NamedTuple):
    """One call, or the Python before the next one; seconds of `perf_counter`."""

    what: str
    began: float
    ended: float


class Recorder:
    """The calls of one event, in order."""

    def __init__(self, client: redis.Redis) -> None:
        self.steps: list[Step] = []
        # As redis-py does it: the digest of the script's text.
        self._names = {
            client.register_script(source(name)).sha: name
            for name in (f"{path.parent.name}/{path.stem}" for path in SCRIPTS)
        }
        self._sent: tuple[str, float] = ("", 0.0)

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Record until the block ends."""
        send, read = AbstractConnection.send_packed_command, AbstractConnection.read_response

        def sending(connection: AbstractConnection, command: Any, **rest: Any) -> Any:
            self._sent = (self._name(command), time.perf_counter())
            return send(connection, command, **rest)

        def reading(connection: AbstractConnection, *args: Any, **named: Any) -> Any:
            try:
                return read(connection, *args, **named)
            finally:
                what, began = self._sent
                self.steps.append(Step(what, began, time.perf_counter()))
                self._sent = (f"{what}, next reply", time.perf_counter())

        with patch.multiple(
            AbstractConnection, send_packed_command=sending, read_response=reading
        ), patch.multiple(os, **{name: self._timed(name) for name in CALLS}):  # fmt: skip
            yield

    def _timed(self, name: str) -> Callable[..., Any]:
        real = getattr(os, name)

        def call(*args: Any, **named: Any) -> Any:
            began = time.perf_counter()
            try:
                return real(*args, **named)
            finally:
                self.steps.append(Step(name, began, time.perf_counter()))

        return call

    def _name(self, command: Any) -> str:
        text = command if isinstance(command, bytes) else b"".join(command)
        found = [name for sha, name in self._names.items() if sha.encode() in text]
        plain = text.split(b"\r\n", 3)[2].decode("ascii", "replace")
        return "Redis: " + (" + ".join(found) or plain)


def _median_steps(site: Bed, events: Iterable[Event]) -> tuple[list[Step], float]:
    """The steps of one event, from its wake-up to rest, each as long as its median over `events`;
    the seconds until its files are durable.
    """
    histories, visible = [], []
    for event in events:
        site.pump.inbox.accept([event])
        site.pump._publish_at = float("-inf")  # as on a site that was idle
        recorder = Recorder(site.client)
        with recorder.recording():
            began = time.perf_counter()
            site.pump.run()
            ended = time.perf_counter()
        histories.append(list(_with_python(recorder.steps, began, ended)))
        visible.append(site.publisher.visible_at - began)
    usual = Counter(tuple(step.what for step in each) for each in histories).most_common(1)[0][0]
    alike = [each for each in histories if tuple(step.what for step in each) == usual]
    at, steps = 0.0, []
    for number, what in enumerate(usual):
        took = median(each[number].ended - each[number].began for each in alike)
        steps.append(Step(what, at, at + took))
        at += took
    return steps, median(visible)


def show(steps: Sequence[Step], visible: float) -> None:
    """Print the steps and their sums by kind."""
    table = Table(title=f"one event, visible after {visible * 1e3:.2f} ms")
    for name in ("at, ms", "took, ms"):
        table.add_column(name, justify="right")
    table.add_column("what")
    sums: Counter[str] = Counter()
    for step in steps:
        took = step.ended - step.began
        sums[step.what.split(":")[0]] += took  # type: ignore[assignment]
        table.add_row(f"{step.began * 1e3:.2f}", f"{took * 1e3:.2f}", step.what)
    table.add_section()
    for kind, took in sums.most_common():
        table.add_row("", f"{took * 1e3:.2f}", f"all of {kind}")
    Console(width=None if Console().is_terminal else 100).print(table)


def _with_python(steps: Sequence[Step], began: float, ended: float) -> Iterator[Step]:
    for step in steps:
        yield Step(PYTHON, began, step.began)
        yield step
        began = step.ended
    yield Step(PYTHON, began, ended)


def timeline(scale: Scale) -> None:
    """Print the steps of one event in a site of a tenth of `scale.urls`."""
    with server() as client, bed(client, "timeline") as site:
        corpus = Corpus()
        pages = site.load(corpus.pages(scale.urls // 10))[: scale.rounds]
        show(*_median_steps(site, map(corpus.changed, pages)))
