"""Faults of workers, schedule and messages: F4, F14, F16, F17, F21, F26."""

from __future__ import annotations

import resource
import signal
import time
from functools import partial

from tests.faults.deployment import WORKERS
from tests.faults.parts import Part, until
from tests.faults.planted import NEXT_SCHEMA, checkout
from tests.faults.run import Case, Run
from tests.faults.tools.wakeups import Mode, Wakeups

LEASE_S = 10.0


def _two_schedules(run: Run) -> None:
    """A second schedule beside the first: every tick comes twice."""
    first = run.system.parts["schedule"]
    second = Part("schedule-2", first.argv, first.env, run.system.home / "logs" / "schedule-2.log")
    run.system.parts["schedule-2"] = second
    second.wanted = True
    run.injected += 1
    until(lambda: second.starts and time.monotonic() - second.since > 8, "it has ticked", 30)


def _no_schedule(run: Run) -> None:
    """No schedule at all."""
    run.system.parts["schedule"].end(signal.SIGKILL)
    run.injected += 1
    run.progress(500)


def _old_lease(run: Run) -> None:
    """A publisher stopped in the middle of its work until its lease is long gone, then let go on:
    with files at hand that are older than those of who took over.
    """
    while run.injected < 4:
        run.progress(run.chance.randrange(20, 100))
        part = _stopped_publisher(run)
        time.sleep(LEASE_S + 2)
        run.progress(20)
        part.tell(signal.SIGCONT)
        run.injected += 1


def _stopped_publisher(run: Run) -> Part:
    while True:
        run.publishing()
        holder = run.system.redis("GET", "{demo}:lease")
        if not holder:
            continue
        part = run.system.parts[holder.decode().partition(":")[0]]
        part.tell(signal.SIGSTOP)
        if run.system.redis("GET", "{demo}:lease") == holder:
            return part
        part.tell(signal.SIGCONT)  # it was quicker: its work was done


def _wakeups(run: Run, mode: Mode) -> None:
    """All of Celery's messages, the schedule's too: what is left is the sweep in each worker."""
    with Wakeups(str(run.system.socket), mode) as wakeups:
        run.progress(500)
        run.rest()
        run.converge()
    run.injected = wakeups.changed
    run.notes.append(f"{wakeups.changed} of {wakeups.seen} messages")


def _poison(run: Run) -> None:
    """Entries that no worker can apply, put into the inbox behind the webhook's back."""
    for junk in (b"\xff", b"{}", b"[1, 2]", b"\x93\x01", b"not an event") * 4:
        run.progress(run.chance.randrange(5, 20))
        run.system.redis("XADD", "{demo}:inbox", "*", "e", junk)  # type: ignore[arg-type]
        run.injected += 1
    dead = run.system.redis
    until(lambda: dead("XLEN", "{demo}:dead") == run.injected, "they are dead letters", 60)


def _restarts(run: Run) -> None:
    """20 rolling restarts, each part in turn, as at a deployment: nobody is refused."""
    run.rest()
    run.send(fresh=True)  # a connection that is kept may be closed just when it is used
    for _ in range(20):
        for name in (*WORKERS, "schedule"):
            run.system.parts[name].restart()
        run.system.reload_web()
        run.injected += 1
        run.progress(20)
    refused = run.ledger.counts["refused"] + run.ledger.counts["unknown"]
    run.expect(not refused, f"{refused} events were not accepted, by status {run.ledger.statuses}")


def _next_version(run: Run) -> None:
    """The webhook of a next version that writes a newer schema, with workers of this one; then
    the workers follow.
    """
    env = {"PYTHONPATH": str(checkout(run.system.home / "next", NEXT_SCHEMA))}
    web = run.system.parts["web"]
    web.env |= env
    web.end()
    web.wanted = True
    run.injected += 1
    until(run.system.ready, "the new webhook takes events")
    run.progress(100)
    waiting = int(run.system.redis("XLEN", "{demo}:inbox"))
    run.expect(waiting >= 50, f"only {waiting} events of the newer schema wait")
    run.expect(not run.system.redis("XLEN", "{demo}:dead"), "some became dead letters")
    for name in WORKERS:
        part = run.system.parts[name]
        part.env |= env
        part.end()
        part.wanted = True
        run.injected += 1


def _few_files(run: Run) -> None:
    """A worker that may open next to no file more, and one that may have next to no memory."""
    for limit, value in ((resource.RLIMIT_NOFILE, 8), (resource.RLIMIT_AS, 1 << 20)) * 2:
        run.progress(run.chance.randrange(20, 100))
        part = run.system.parts[run.chance.choice(WORKERS)]
        before = resource.prlimit(part.pid, limit)
        resource.prlimit(part.pid, limit, (value, before[1]))
        run.injected += 1
        run.progress(200)
        if part.pid:
            resource.prlimit(part.pid, limit, before)


CASES = [
    Case("F4", "two schedules", _two_schedules),
    Case("F4", "no schedule", _no_schedule),
    Case("F14", "a worker stopped past its lease", _old_lease),
    Case("F16", "poison events", _poison),
    Case("F17", "every wake-up lost", partial(_wakeups, mode="drop")),
    Case("F17", "every wake-up doubled", partial(_wakeups, mode="double")),
    Case("F17", "every wake-up 3 s late", partial(_wakeups, mode="delay")),
    Case("F21", "rolling restarts", _restarts),
    Case("F21", "a newer webhook before its workers", _next_version),
    Case("F26", "no file descriptors, no memory", _few_files),
]
