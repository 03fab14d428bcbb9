"""Faults of load: F15 and F27, more events than the workers can take at once."""

from __future__ import annotations

import signal
from collections.abc import Iterable
from contextlib import ExitStack
from itertools import islice
from pathlib import Path

from tests.faults import kills
from tests.faults.contents import GROUPS, LANGUAGES
from tests.faults.deployment import BASE, WORKERS, Options
from tests.faults.ledger import Sent
from tests.faults.run import Case, Run
from tests.faults.traffic import Sender, delivery

REQUEST = 1_000
MANY_GROUPS = range(1_000, 1_250)
FIRST_GROUPS = range(2_000, 2_500)
"""Apart from those of the senders, which are below GROUPS."""
assert min(MANY_GROUPS) > GROUPS


def _burst(run: Run) -> None:
    """100,000 events for workers that are stopped: 503 at the high water, then all are done."""
    sender = _stopped(run)
    full = 0
    for batch in range(200):
        full += _send(sender, _plain(run, "burst", batch * 500, 500)) == 503
    used = int(run.system.redis("MEMORY", "USAGE", "{demo}:inbox", "SAMPLES", "0"))
    waiting = int(run.system.redis("XLEN", "{demo}:inbox"))
    run.expect(full and waiting <= 60_000, f"{waiting} events wait, {full} batches were refused")
    run.notes.append(f"{waiting:,} waited in {used / 1e6:.0f} MB, {full} of 200 batches 503")
    _go_on(run)


def _groups(run: Run) -> None:
    """Groups of 20 languages that each get their last one at once: in one request, in 500 single
    ones behind workers that are stopped, and among 20,000 other events, while workers are killed.
    """
    sender, last = _stopped(run), LANGUAGES[-1]
    _go_on(run)
    for numbers in (MANY_GROUPS, FIRST_GROUPS):
        members = (_member(run, n, code) for n in numbers for code in LANGUAGES[:-1])
        while some := list(islice(members, REQUEST)):
            _send(sender, some)
    run.converge(run.within)
    _send(sender, [_member(run, number, last) for number in MANY_GROUPS])
    run.injected += 1
    run.converge(run.within)
    _stopped(run)
    for number in FIRST_GROUPS:
        _send(sender, [_member(run, number, last)])
    for batch in range(20):
        _send(sender, _plain(run, "waits", batch * REQUEST, REQUEST))
    waiting = int(run.system.redis("XLEN", "{demo}:inbox"))
    run.expect(waiting >= 20_000, f"only {waiting} events wait")
    run.notes.append(f"{waiting:,} events waited")
    _go_on(run)
    for _ in range(5):
        run.injected += kills.kill_in_flight(run)


def _stopped(run: Run) -> Sender:
    """Have the usual senders end and the workers stop; a sender of one's own."""
    run.rest()
    for name in WORKERS:
        run.system.parts[name].tell(signal.SIGSTOP)
    run.injected += 1
    return Sender(run.system, run.ledger, 7, 0, [])


def _go_on(run: Run) -> None:
    for name in WORKERS:
        run.system.parts[name].tell(signal.SIGCONT)


def _plain(run: Run, name: str, first: int, count: int) -> list[Sent]:
    numbers = range(first, first + count)
    return [
        Sent(f"{BASE}/pages/{name}/{n}", run.ledger.next_version(), gone=False) for n in numbers
    ]


def _member(run: Run, number: int, code: str) -> Sent:
    loc = f"{BASE}/{code}/many/{number}"
    return Sent(loc, run.ledger.next_version(), gone=False, group=f"many {number}", lang=code)


def _send(sender: Sender, events: Iterable[Sent]) -> int:
    return sender.send(delivery(list(events), "pages", sender.contents.ident()))


def _no_rate(_directory: Path, _stack: ExitStack) -> Options:
    return Options(site="rate = 0")


CASES = [
    Case("F15", "100,000 events, workers stopped", _burst, _no_rate, within=120),
    Case("F27", "groups of 20 languages, 20,000 events, workers stopped", _groups, _no_rate,
         within=180),
]  # fmt: skip
