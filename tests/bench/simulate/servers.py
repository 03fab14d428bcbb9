"""What can be busy: pools of processes, Redis as one core with a log, the disk of a host."""

from __future__ import annotations

import math
from collections.abc import Generator
from random import Random
from typing import Any

import simpy

from tests.bench.simulate.counts import Count

Steps = Generator[simpy.Event, Any, Any]
"""A process of the simulation, or a part of one."""

_P99 = 2.326
"""The normal distribution's p99, in standard deviations."""


class Chance:
    """Service times that spread as measured: lognormal, with the median and p99 given."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)

    def about(self, median: float, spread: float) -> float:
        """Return a time whose p99 is `spread` times its median."""
        if median <= 0 or spread <= 1:
            return median
        return median * math.exp(self.random.gauss(0, math.log(spread) / _P99))


class Pool:
    """So many equal servers, or slots, with one queue."""

    def __init__(self, env: simpy.Environment, name: str, count: int) -> None:
        self.name, self.count = name, count
        self._env, self._servers = env, simpy.Resource(env, count)
        self._busy = self._busy_s = self._since = self._began = 0.0

    def serve(self, seconds: float) -> Steps:
        """Wait for a server and keep it for `seconds`."""
        with self._servers.request() as mine:
            yield mine
            yield from self.busy(self._env.timeout(seconds))

    def slot(self) -> simpy.resources.resource.Request:
        """Return the request of a slot, a context manager; go through `busy` in it."""
        return self._servers.request()

    def busy(self, steps: Steps | simpy.Event) -> Steps:
        """Go through `steps` and count their time."""
        self._count(1)
        if isinstance(steps, simpy.Event):
            yield steps
        else:
            yield from steps
        self._count(-1)

    def begin(self) -> None:
        """Count from now on."""
        self._count(0)
        self._busy_s, self._began = 0.0, self._env.now

    def share(self) -> float:
        """Return the part of all servers that was busy since `begin`."""
        self._count(0)
        lasted = self._env.now - self._began
        return self._busy_s / lasted / self.count if lasted > 0 else 0.0

    def _count(self, more: int) -> None:
        now = self._env.now
        self._busy_s += self._busy * (now - self._since)
        self._since, self._busy = now, self._busy + more


class Redis:
    """One core that runs what waits in rounds; a round with writes ends with one flush of the log
    for all of them, and only then are they answered (`appendfsync always`).
    """

    def __init__(
        self, env: simpy.Environment, chance: Chance, command_s: float, flush_s: float,
        write_s: float, *, spread: float = 1.0, flush_spread: float = 1.0, rtt_s: float = 0.0,
        cores: Pool | None = None,
    ) -> None:  # fmt: skip
        self.core, self.log = Pool(env, "Redis", 1), Pool(env, "log of Redis", 1)
        self.written = self.sent = 0.0
        self._env, self._chance, self._cores = env, chance, cores
        self._command_s, self._flush_s, self._write_s = command_s, flush_s, write_s
        self._spread, self._flush_spread, self._rtt_s = spread, flush_spread, rtt_s
        self._waiting: list[tuple[Count, simpy.Event]] = []
        self._work: simpy.Event | None = None
        env.process(self._run())

    def call(self, count: Count) -> simpy.Event:
        """Return the event of the answer to so many commands in one round trip."""
        answer = self._env.event()
        self._waiting.append((count, answer))
        if self._work is not None:
            self._work.succeed()
            self._work = None
        return answer

    def begin(self) -> None:
        """Count from now on."""
        self.written = self.sent = 0.0
        self.core.begin()
        self.log.begin()

    def _run(self) -> Steps:
        while True:
            if not self._waiting:
                self._work = self._env.event()
                yield self._work
            round_, self._waiting = self._waiting, []
            seconds = self._command_s * sum(count.commands for count, _ in round_)
            seconds = self._chance.about(seconds, self._spread)
            yield from self.core.busy(serve(self._env, self._cores, seconds))
            log = sum(count.log for count, _ in round_)
            self.written += log
            self.sent += sum(count.network for count, _ in round_)
            if log:
                flush = self._chance.about(self._flush_s, self._flush_spread)
                flush += log * self._write_s
                yield from self.log.busy(self._env.timeout(flush))
            for _, answer in round_:
                if self._rtt_s:
                    _later(self._env, answer, self._rtt_s)
                else:
                    answer.succeed()


def _later(env: simpy.Environment, answer: simpy.Event, seconds: float) -> None:
    timer = env.timeout(seconds)
    assert timer.callbacks is not None
    timer.callbacks.append(lambda _: answer.succeed())


def serve(env: simpy.Environment, cores: Pool | None, seconds: float) -> Steps:
    """Spend `seconds` of a processor: of one of the `cores` that all share, if they do."""
    if cores is None:
        yield env.timeout(seconds)
    else:
        yield from cores.serve(seconds)


class Worker:
    """One process: its threads share one interpreter, and its host's disk with other workers."""

    def __init__(self, env: simpy.Environment, number: int, host: int, idle: float) -> None:
        self.host, self.sites = host, 0
        self.interpreter = Pool(env, f"worker {number}", 1)
        self._slower = 1 / max(1 - idle, 0.01)

    def compute(self, env: simpy.Environment, cores: Pool | None, seconds: float) -> Steps:
        """Compute for `seconds`, slower by what the loops of the worker take beside it."""
        seconds *= self._slower
        with self.interpreter.slot() as mine:
            yield mine
            yield from self.interpreter.busy(serve(env, cores, seconds))
