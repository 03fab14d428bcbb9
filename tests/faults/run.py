"""One fault under load: a system of its own, senders, a reader, injections, and the verdict."""

from __future__ import annotations

import os
import random
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from tests.faults import oracle
from tests.faults.contents import DELIVERIES
from tests.faults.deployment import Deployment, Options
from tests.faults.ledger import Ledger
from tests.faults.parts import until
from tests.faults.traffic import SENDERS, Sender
from tests.faults.watcher import Watching
from tests.waiting import DEADLINE_S, LONGEST_S

GLANCE_S = 0.000_2
"""Between two looks for what stands for a millisecond or two, as a temporary file does. Without a
pause they would take a processor from those who make it.
"""


class Row(NamedTuple):
    """One line of the report.

    `lost` counts pages that are not as acknowledged, `torn` what the reader must not have seen,
    `disagreeing` pages whose translation group, news or videos are not as told,
    `seconds` is the time from the end of the last injection until everything was right, `wrong`
    says what was not; `note` what this fault is measured by besides.
    """

    fault: str
    name: str
    injected: int
    acked: int
    refused: int
    unknown: int
    lost: int
    torn: int
    disagreeing: int
    reads: int
    seconds: float
    wrong: list[str]
    note: str = ""


class Run:
    """What a case is given: the system, the ledger, seeded chance, and means to wait."""

    def __init__(self, directory: Path, seed: int, *, options: Options, pace: float = 0.02) -> None:
        self.chance = random.Random(seed)
        self.ledger = Ledger()
        self.injected = 0
        self.notes: list[str] = []
        self.wrong: list[str] = []
        self.within = 30.0
        """Seconds without progress after which it counts as never right again."""
        self.quiet_s = float("inf")
        """Seconds with nothing left to do after which what is wrong counts as never right again."""
        self.system = Deployment(directory, options)
        self.pace = pace
        self._seed = seed
        self._names = list(DELIVERIES)
        self._senders: list[Sender] = []
        self._watching: Watching | None = None
        self.reads: Counter[str] = Counter()
        self.torn: list[str] = []

    @property
    def longest(self) -> float:
        """Seconds that the slowest answer to a sender took."""
        return max(sender.longest for sender in self._senders)

    def watch(self, url: str = "") -> None:
        """Let a reader begin, who never may see anything go back; instead of the one before."""
        self.look_away()
        self._watching = Watching(self.system.root, url)

    def look_away(self) -> None:
        """End the reader."""
        if self._watching is not None:
            reads, torn = self._watching.end()
            self.reads.update(reads)
            self.torn += torn
            self._watching = None

    def send(self, *, fresh: bool = False) -> None:
        """Let the senders begin; `fresh`: a connection for each request, as a CMS has."""
        self._senders = [
            Sender(
                self.system,
                self.ledger,
                self._seed * 100 + n,
                self.pace * SENDERS,
                self._names,
                fresh=fresh,
            )
            for n in range(SENDERS)
        ]
        for sender in self._senders:
            sender.start()
        self.progress(20)

    def rest(self) -> None:
        """Let the senders end."""
        for sender in self._senders:
            sender.stop()
        for sender in self._senders:
            sender.join()

    def progress(self, events: int, seconds: float = 60) -> None:
        """Wait until so many more events are acknowledged."""
        goal = self.ledger.acked + events
        until(lambda: self.ledger.acked >= goal, f"{events} more events are accepted", seconds)

    def refused(self, requests: int) -> None:
        """Wait until so many more requests are answered 503."""
        goal = self.ledger.statuses[503] + requests
        until(lambda: self.ledger.statuses[503] >= goal, f"{requests} requests are refused")

    def publishing(self) -> None:
        """Wait until a temporary file is in the web root: somebody is in the middle of it."""
        deadline = time.monotonic() + DEADLINE_S
        while not any(name.startswith(".sitemapd-") for name in os.listdir(self.system.root)):
            if time.monotonic() > deadline:
                raise TimeoutError("nothing is published any more")
            time.sleep(GLANCE_S)

    def converge(self, seconds: float = 30) -> float:
        """Wait until the files say what was acknowledged and nothing is left to do.

        TimeoutError if nothing moves for `seconds`.
        """

        since = time.monotonic()

        def right() -> bool:
            nonlocal since
            if not self.system.quiet():
                since = time.monotonic()
                return False
            if time.monotonic() - since > self.quiet_s:
                raise TimeoutError(f"nothing was left to do for {self.quiet_s} s, and it is wrong")
            return not self._amiss()

        return until(right, "the files say what was acknowledged", seconds, self.system.work)

    def _amiss(self) -> bool:
        return bool(
            oracle.lost(self.system, self.ledger) or oracle.disagreeing(self.system, self.ledger)
        )

    def wrong_for_good(self) -> list[str]:
        """What is wrong and stays so: news and videos leave by the clock, and between the rename of
        a shard and that of its index the two dates differ. One look at which all is right decides:
        at the next one a video may be leaving.
        """
        deadline = time.monotonic() + 15
        while found := oracle.wrong(self.system, self.ledger):
            if time.monotonic() > deadline:
                break
            time.sleep(LONGEST_S)  # each look is a command, too
        return found

    def waits_for(self, holds: Callable[[], bool], seconds: float = 10) -> bool:
        """Whether `holds` comes true, looked at every GLANCE_S: it may be so for a moment only."""
        deadline = time.monotonic() + seconds
        while not holds():
            if time.monotonic() > deadline:
                return False
            time.sleep(GLANCE_S)
        return True

    def expect(self, holds: object, what: str) -> None:
        """Note it as wrong if something else than the ledger shows does not hold."""
        if not holds:
            self.wrong.append(what)


class Case(NamedTuple):
    """A fault: its id in RELIABILITY 3, what is done, and how the system is set up for it."""

    fault: str
    name: str
    inject: Callable[[Run], None]
    prepare: Callable[[Path, ExitStack], Options] = lambda _directory, _stack: Options()
    pace: float = 0.02
    within: float = 30.0
    """Seconds without progress after which it counts as never right again."""
    quiet_s: float = float("inf")
    """The same with nothing left to do. Files that were changed by hand are looked at some time
    later, what a planted mistake has lost never is.
    """


def perform(case: Case, seed: int) -> Row:
    """Run one case from beginning to verdict."""
    with ExitStack() as stack:
        place = stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True))
        directory = Path(place).resolve() / "home"
        options = case.prepare(directory, stack)
        run = Run(directory, seed, options=options, pace=case.pace)
        run.within, run.quiet_s = case.within, case.quiet_s
        stack.enter_context(run.system)
        stack.callback(run.look_away)
        run.watch()
        lost: list[str] = []
        disagreeing: list[str] = []
        try:
            run.send()
            case.inject(run)
            ended = time.monotonic()
            run.rest()
            run.converge(run.within)
            seconds = time.monotonic() - ended
        except TimeoutError as error:
            run.rest()
            seconds = float("inf")
            run.wrong += [str(error), *run.system.complaints()]
        run.look_away()
        if run.system.quiet() or seconds == float("inf"):
            lost = oracle.lost(run.system, run.ledger)
            disagreeing = oracle.disagreeing(run.system, run.ledger)
            run.wrong += [*run.wrong_for_good(), *disagreeing[:20]]
        counts = run.ledger.counts
        run.notes += [f"{number:,} refused: {why}" for why, number in run.ledger.refusals.items()]
        run.expect(not run.ledger.statuses[422], "the senders' own events were answered 422")
        return Row(
            case.fault, case.name, run.injected, counts["acked"], counts["refused"],
            counts["unknown"], len(lost), run.reads["faults"], len(disagreeing),
            run.reads["shard"], seconds, [*run.wrong, *run.torn], "; ".join(run.notes),
        )  # fmt: skip
