"""A sender is missed when it is silent against its own habit, and never otherwise."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from shared.domain.sender_habit import BUSY, WEEK, silent_hours

counts = st.integers(0, 3)
histories = st.lists(counts, max_size=5 * WEEK)
weeks = st.builds(
    lambda busy: [int(hour in busy) for hour in range(WEEK)],
    st.sets(st.integers(0, WEEK - 1), min_size=1),
)
OFFICE = [int(hour < 120 and 8 <= hour % 24 < 18) for hour in range(WEEK)]


@given(histories, st.integers(1, 9))
def test_whoever_has_just_sent_is_not_silent(hours: list[int], now: int) -> None:
    assert silent_hours([*hours, now]) is None
    assert silent_hours([*hours, now, 0]) is None


@given(st.integers(0, 5 * WEEK))
def test_a_site_that_never_sent_is_not_missed(length: int) -> None:
    assert silent_hours([0] * length) is None


@given(weeks, st.integers(1, 5 * WEEK))
def test_who_keeps_to_a_week_is_never_missed(week: list[int], length: int) -> None:
    hours = (week * 5)[:length]

    assert silent_hours([*hours, 0]) is None


@given(st.sets(st.integers(0, WEEK - 1), min_size=1, max_size=BUSY - 1), st.integers(0, 3 * WEEK))
def test_who_sends_rarely_is_never_missed(busy: set[int], silent: int) -> None:
    week = [int(hour in busy) for hour in range(WEEK)]

    assert silent_hours(week * 4 + [0] * silent) is None


@given(weeks.filter(lambda week: sum(week) >= BUSY), st.integers(1, 2 * WEEK))
def test_who_keeps_to_a_week_and_stops_is_missed_as_soon_as_busy_hours_pass(
    week: list[int], silent: int
) -> None:
    hours = week * 4
    missed = [week[at % WEEK] for at in range(silent)]
    last = max(at for at, events in enumerate(hours) if events)
    rest = len(hours) - 1 - last
    against = sum(missed[: WEEK - rest]) >= BUSY if silent + rest > WEEK else sum(missed) >= BUSY

    assert silent_hours([*hours, *([0] * silent), 0]) == (silent + rest if against else None)


@given(histories, st.integers(0, 200))
def test_the_answer_is_the_hours_since_the_last_event(hours: list[int], silent: int) -> None:
    found = silent_hours([*hours, 1, *([0] * silent), 0])

    assert found in {None, silent}


def test_a_steady_sender_is_missed_after_a_few_hours() -> None:
    steady = [5] * (3 * WEEK)

    assert silent_hours([*steady, *([0] * (BUSY - 1)), 0]) is None
    assert silent_hours([*steady, *([0] * BUSY), 0]) == BUSY


def test_a_weekend_is_no_silence_and_a_monday_is() -> None:
    weekend = OFFICE * 4
    monday_noon = [*weekend, *([0] * 12), 0]
    monday_morning = [*weekend, *([0] * 10), 0]

    assert silent_hours([*weekend, 0]) is None
    assert silent_hours(monday_morning) is None
    assert silent_hours(monday_noon) == 12 + 48 + 6


def test_a_habit_is_known_after_two_weeks() -> None:
    assert silent_hours([*([1] * WEEK), *([0] * 20), 0]) is None
    assert silent_hours([*([1] * 2 * WEEK), *([0] * 20), 0]) == 20
