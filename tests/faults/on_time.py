"""F12: the wall clock of the app, of Redis or of both is wrong, and stays wrong."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

from tests.faults.deployment import WORKERS, Options
from tests.faults.parts import until
from tests.faults.run import Case, Run
from tests.faults.tools.clock import Clock

SHIFTS = (60, -60, 3600, -3600, 86_400, -86_400)


def _prepare(directory: Path, stack: ExitStack) -> Options:
    clock = stack.enter_context(Clock(directory.parent / "clock"))
    return Options(env=clock.environment(), tool=clock, timed=False)


def _jumps(run: Run) -> None:
    """Each jump is followed by a kill, for expiry in Redis follows its clock; the last stays."""
    clock: Clock = run.system.options.tool
    both = [(shift * app, shift * store) for shift in SHIFTS for app, store in _WHERE]
    run.chance.shuffle(both)
    for app, store in both:
        run.progress(run.chance.randrange(20, 100))
        clock.shift(app=app, store=store)
        run.system.skew = app
        run.injected += 1
        run.progress(20)
        run.system.parts[run.chance.choice(WORKERS)].kill()
    run.notes.append(f"ends with app {app:+,} s, Redis {store:+,} s")


def _alone(run: Run) -> None:
    """The app's clock jumps, the senders' does not: what is signed 300 s ago or more is refused."""
    clock: Clock = run.system.options.tool
    for shift in (3600, -3600):
        run.progress(20)
        refused = run.ledger.statuses[401]
        clock.shift(app=shift)
        run.injected += 1
        until(lambda refused=refused: run.ledger.statuses[401] > refused + 20, "401")  # type: ignore[misc]
        clock.shift()


_WHERE = ((1, 0), (0, 1), (1, 1))

CASES = [
    Case("F12", "clocks of app and Redis jump up to a day", _jumps, _prepare),
    Case("F12", "the app's clock alone is an hour off", _alone, _prepare),
]
