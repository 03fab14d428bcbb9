"""A priority is a decimal from 0.0 to 1.0 in one published form, or none (PROTOCOL M8)."""

from __future__ import annotations

import re
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.sitemap.entry import priority_text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0.0"),
        (1, "1.0"),
        (0.0, "0.0"),
        (1.0, "1.0"),
        (0.5, "0.5"),
        (0.1 + 0.2, "0.3"),
        (1 / 3, "0.3333333333333333"),
        (1e-5, "0.00001"),
        (1e-300, "0.0"),
        ("0", "0.0"),
        ("1", "1.0"),
        ("0.50", "0.5"),
        ("1.00", "1.0"),
        (".5", "0.5"),
        ("1.", "1.0"),
        ("0.", "0.0"),
        ("+0.5", "0.5"),
        ("+.5", "0.5"),
        ("00.50", "0.5"),
        ("001.", "1.0"),
        ("-0.0", "0.0"),
        ("-.0", "0.0"),
        ("0.0000000000000001", "0.0000000000000001"),
    ],
)
def test_every_way_to_write_a_priority_has_one_published_form(value: object, text: str) -> None:
    assert text == priority_text(value)


@pytest.mark.parametrize(
    "value",
    [
        True, False, None, [], {}, [0.5], b"0.5",
        -1, 2, -0.1, 1.01, 1.0000000000000002, float("nan"), float("inf"), -float("inf"),
        "", " 0.5", "0.5\n", "0,5", "1e-1", "-0.5", "-1", ".", "+", "-", "+-0", "0.5.", "1.01",
        "0x1",
        "10", "01.1",
        "NaN", "\u0660.5", "0.\u0665", "0.\u00b2", "0." + "1" * 17,
    ],
)  # fmt: skip
def test_what_is_no_priority_is_none(value: object) -> None:
    assert priority_text(value) is None


def test_an_integer_too_long_to_be_written_as_text_is_no_priority() -> None:
    assert priority_text(10**5_000) is None


@given(st.floats(0, 1))
def test_every_number_from_0_to_1_is_a_priority_that_keeps_its_value(value: float) -> None:
    text = priority_text(value)

    assert text is not None
    assert abs(Decimal(text) - Decimal(value)) <= Decimal("1e-16")
    assert text == priority_text(text)


@given(st.text() | st.from_regex(r"\A[+-]?[01]*\.?[0-9]*\Z") | st.floats() | st.integers())
def test_any_value_is_a_valid_priority_or_none(value: float | str) -> None:
    text = priority_text(value)

    assert text is None or (re.fullmatch(r"[01]\.[0-9]{1,16}", text) and 0 <= Decimal(text) <= 1)
