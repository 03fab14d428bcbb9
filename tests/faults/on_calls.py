"""F1, F2, F3, F11: at each system call of an answer and of a publish, a kill or an error."""

from __future__ import annotations

from contextlib import suppress

from tests.faults.deployment import WORKERS
from tests.faults.parts import Part, until
from tests.faults.run import Case, Run
from tests.faults.tools.needs import ToolError
from tests.faults.tools.syscalls import FailAt, KillAt

FIRES_S = 10
TALK = [(call, nth) for call in ("recvfrom", "sendto") for nth in range(1, 9)]
"""The calls of a conversation with Redis: an answer has one each, a publish about six."""
ANSWER = [*TALK, ("write", 1), ("writev", 1), ("epoll_wait", 1), ("epoll_wait", 2)]
PUBLISH = [
    (call, nth)
    for call, most in (
        ("openat", 4), ("writev", 4), ("fchmod", 3), ("utimensat", 3), ("fadvise64", 3),
        ("fsync", 5), ("renameat", 4), ("unlinkat", 1), ("pwrite64", 1), ("close", 4),
    )
    for nth in range(1, most + 1)
]  # fmt: skip
"""As tools.syscalls.trace shows a publish of two or three files."""
REFUSALS = [
    (call, nth, error)
    for call, errors in (
        ("openat", ("EIO", "EMFILE")), ("writev", ("EIO", "ENOSPC", "EDQUOT")),
        ("fchmod", ("EPERM",)), ("utimensat", ("EIO",)), ("fsync", ("EIO", "ENOSPC")),
        ("renameat", ("EIO", "EROFS", "ENOSPC")),
    )
    for error in errors
    for nth in (1, 2, 3)
]  # fmt: skip


def _alone(run: Run) -> Part:
    """The only worker that is left, once it works: a call that fails while it starts is none of
    a publish, and ends any program.
    """
    run.system.parts[WORKERS[1]].end()
    run.publishing()
    return run.system.parts[WORKERS[0]]


def _killed_at(run: Run, part: Part, child: bool, calls: list[tuple[str, int]]) -> None:
    """Kill `part` once at each of `calls`; those that it does not come to are not counted."""
    for call, nth in calls:
        run.progress(20)
        try:
            tracer = KillAt(part.pids()[-1 if child else 0], call, nth)
        except (ToolError, ProcessLookupError, IndexError):
            continue  # it has just died or started
        with tracer, suppress(TimeoutError):
            until(tracer.fired, f"{call} {nth}", FIRES_S)
            run.injected += 1


def _answer(run: Run) -> None:
    _killed_at(run, run.system.parts["web"], True, ANSWER)


def _talk(run: Run) -> None:
    _killed_at(run, _alone(run), False, TALK)


def _publish(run: Run) -> None:
    _killed_at(run, _alone(run), False, PUBLISH)


def _refuse(run: Run) -> None:
    """Each call fails once, or for ever until we let go; the worker must not even die."""
    worker = _alone(run)
    starts = worker.starts
    for call, nth, error in REFUSALS:
        run.progress(20)
        with FailAt(worker.pid, call, error, nth) as tracer, suppress(TimeoutError):
            until(tracer.fired, f"{call} {nth}", FIRES_S)
            run.injected += 1
    run.expect(worker.starts == starts, "the worker died of an error")


CASES = [
    Case("F1", "web killed at each system call", _answer),
    Case("F2", "worker killed at each call to Redis", _talk),
    Case("F3", "publisher killed at each system call", _publish),
    Case("F11", "each call of a publish fails", _refuse),
]
