"""A loop outlives what its work raises, rests after it, and says so."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import structlog
from structlog.testing import capture_logs

from shared.errors import SourceError, StoreDownError, StoreError
from shared.store.operations.loop_health import (
    LoopReport,
    LoopTrouble,
    ReportedLoops,
    failing,
    troubles,
)
from worker.loops.loop import DOWN_S, FIRST_S, HANG_S, LONGEST_S, Loop


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def loop(clock: Clock) -> Loop:
    return Loop("notify", clock=clock, jitter=lambda: 0.0)


@pytest.fixture
def logged(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Callable[[], None]], list[Any]]]:
    """The log lines of what is done, of every level, whatever a command configured before."""
    configured = structlog.get_config()
    structlog.reset_defaults()
    monkeypatch.setattr("worker.loops.loop._log", structlog.get_logger())

    def lines(do: Callable[[], None]) -> list[Any]:
        with capture_logs() as found:
            do()
        return found

    yield lines
    structlog.configure(**configured)


def fail(loop: Loop, error: Exception, site: str = "demo", part: str = "") -> None:
    with loop.at(site, part):
        raise error


def rest_of(loop: Loop, clock: Clock, error: Exception) -> float:
    """How long the loop rests after one more failure, to half a second."""
    begun = clock.now
    fail(loop, error)
    while not loop.due("demo"):
        clock.now += 0.5
    return clock.now - begun


def test_each_failure_in_a_row_doubles_the_rest_up_to_a_bound(loop: Loop, clock: Clock) -> None:
    rests = [rest_of(loop, clock, ValueError("bad")) for _ in range(12)]

    assert rests == [min(FIRST_S * 2**n, LONGEST_S) for n in range(12)]


def test_a_success_ends_the_rest_and_the_trouble(loop: Loop, clock: Clock) -> None:
    for _ in range(5):
        rest_of(loop, clock, ValueError("bad"))
    assert len(loop.troubles()) == 1

    with loop.at("demo"):
        pass

    assert loop.troubles() == []
    assert rest_of(loop, clock, ValueError("bad")) == FIRST_S


def test_jitter_only_lengthens_a_rest_and_by_a_quarter_at_most(clock: Clock) -> None:
    loop = Loop("notify", clock=clock, jitter=lambda: 1.0)

    assert rest_of(loop, clock, ValueError()) == FIRST_S * 1.25


def test_without_redis_no_rest_grows(loop: Loop, clock: Clock) -> None:
    down = [rest_of(loop, clock, StoreDownError("away")) for _ in range(8)]

    assert set(down) == {DOWN_S}


def test_an_error_may_have_a_rest_of_its_own(clock: Clock) -> None:
    loop = Loop("reconcile", rests={SourceError: 900.0}, clock=clock, jitter=lambda: 0.0)

    assert rest_of(loop, clock, SourceError("away")) == 900.0


def test_one_duty_that_fails_leaves_the_others_as_they_are(loop: Loop) -> None:
    fail(loop, ValueError("bad"), "a", "indexnow")

    assert not loop.due("a", "indexnow")
    assert loop.due("a", "bing")
    assert loop.due("b", "indexnow")
    assert loop.due()


def test_a_trouble_says_where_since_when_how_often_and_why(loop: Loop) -> None:
    for _ in range(3):
        fail(loop, KeyError("posts-2026-12"), "demo", "indexnow")

    (told,) = loop.troubles()

    assert (told.loop, told.site, told.part) == ("notify", "demo", "indexnow")
    assert (told.state, told.times, told.reason) == ("failing", 3, "KeyError: 'posts-2026-12'")
    assert str(ReportedLoops("w1", told)) == (
        "notify (indexnow) of w1 is failing, 3 times: KeyError: 'posts-2026-12'"
    )


def test_equal_failures_are_logged_ever_more_seldom_and_a_new_kind_at_once(
    loop: Loop, logged: Callable[[Callable[[], None]], list[Any]]
) -> None:
    def do() -> None:
        for _ in range(20):
            fail(loop, StoreError("bad record"))
        fail(loop, StoreError("another"))
        with loop.at("demo"):
            pass

    lines = logged(do)

    assert [line.get("times") for line in lines] == [1, 2, 4, 8, 16, 21, 21]
    assert [line["event"] for line in lines] == ["loop failed"] * 6 + ["loop recovered"]


def test_work_without_progress_hangs_and_the_line_is_named(loop: Loop, clock: Clock) -> None:
    begun, over = threading.Event(), threading.Event()

    def work() -> None:
        with loop.at("demo", "indexnow"):
            begun.set()
            over.wait(30)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        assert begun.wait(10)
        clock.now += HANG_S
        assert loop.troubles() == []
        clock.now += 1

        (told,) = loop.troubles()

        assert (told.state, told.part) == ("hanging", "indexnow")
        assert "threading.py:" in told.reason
    finally:
        over.set()
        thread.join()
    assert loop.troubles() == []


def test_work_that_declares_progress_does_not_hang_and_neither_does_what_it_is_part_of(
    loop: Loop, clock: Clock
) -> None:
    with loop.at(), loop.at("demo"):
        for _ in range(5):
            clock.now += HANG_S
            loop.progress()
            assert loop.troubles() == []
        clock.now += HANG_S + 1
        assert [told.state for told in loop.troubles()] == ["hanging", "hanging"]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_thread_that_has_ended_is_a_trouble_until_the_loop_is_stopped(loop: Loop) -> None:
    def end() -> None:
        raise KeyboardInterrupt

    loop.start(end, 0.0)
    loop.join(10)

    assert [told.reason for told in loop.troubles()] == ["its thread has ended"]
    loop.stop()
    assert loop.troubles() == []


def test_whoever_asks_does_not_shorten_the_rest_of_a_loop_that_fails() -> None:
    tries, tried = [0], threading.Event()
    loop = Loop("reconcile", first_s=600.0)

    def step() -> None:
        tries[0] += 1
        tried.set()
        raise ValueError

    loop.start(step, 0.0)
    try:
        assert tried.wait(10)
        for _ in range(100):
            loop.ask()
        loop.join(0.2)
        assert tries == [1]
    finally:
        loop.stop()
        loop.join(10)
    assert tries == [1]


def test_a_loop_goes_on_at_once_when_asked_and_takes_its_leave_when_stopped() -> None:
    steps, done = [], threading.Semaphore(0)

    def step() -> None:
        steps.append(loop.stopping)
        done.release()

    loop = Loop("heartbeat")
    loop.start(step, 600.0, farewell=True)
    assert done.acquire(timeout=10)
    loop.ask()
    assert done.acquire(timeout=10)
    loop.stop()
    loop.join(10)

    assert steps == [False, False, True]


def test_what_is_in_trouble_is_told_of_every_worker_the_oldest_first() -> None:
    def trouble(since: float) -> LoopTrouble:
        return LoopTrouble(
            loop="tidy", site="", part="", state="failing", since=since, times=1, reason="bad"
        )

    reports = {
        name: LoopReport(succeeded={}, troubles=(trouble(since),))
        for name, since in (("w1", 20.0), ("w2", 10.0))
    }
    found = troubles(reports)

    assert [each.worker for each in found] == ["w2", "w1"]
    assert [loop for loop, fails in failing(found).items() if fails] == ["tidy"]
