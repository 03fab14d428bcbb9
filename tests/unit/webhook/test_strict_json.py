"""Strict JSON: any bytes give values or our error, in linear time."""

from __future__ import annotations

import json
import time
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webhook.problems import RefusedError
from webhook.request_body import MAX_DEPTH, MAX_DIGITS, MAX_ITEMS, batch, lines


def refusal(read, body: bytes) -> str:
    with pytest.raises(RefusedError) as refused:
        read(body)
    return refused.value.code


def test_an_object_is_one_item_and_an_array_its_elements():
    assert batch(b' {"a": 1}\n') == [{"a": 1}]
    assert batch(b'[{"a": 1}, 2, [3]]') == [{"a": 1}, 2, [3]]


def test_each_line_is_one_item_and_blank_lines_none():
    body = b'{"a": "\xe2\x80\xa8"}\r\n\r\n \t\n{"b": [1,\r2]}'

    assert lines(body) == [{"a": "\u2028"}, {"b": [1, 2]}]


def test_lines_cannot_be_joined_into_other_items():
    assert refusal(lines, b'{"a": [1\n2]}') == "json"
    assert refusal(lines, b'{"a": 1}, {"b": 2}') == "json"


@pytest.mark.parametrize("body", [b"", b" ", b"[]", b"1", b'"a"', b"null", b"{", b"{}{}", b"[1,]"])
def test_bodies_without_items_are_refused(body):
    assert refusal(batch, body) == "json"


@pytest.mark.parametrize("body", [b"", b"\n\r\n \n"])
def test_blank_bodies_are_refused(body):
    assert refusal(lines, body) == "json"


def test_t8_nesting_is_taken_up_to_the_limit():
    exact = b"[" * MAX_DEPTH + b"1" + b"]" * MAX_DEPTH
    flat = b"[" + b'{"a": "[[[{{{\\"]"},' * 30 + b"1]"

    assert len(batch(exact)) == 1
    assert len(batch(flat)) == 31
    assert refusal(batch, b"[" + exact + b"]") == "json"
    assert refusal(lines, b"[" + exact + b"]") == "json"


@pytest.mark.parametrize(
    "body", [b"[" * 1_000_000, b'{"a":' * 200_000, b"[{" * 500_000, b'[["' * 300_000]
)
def test_t8_a_megabyte_of_open_brackets_is_refused_quickly(body):
    began = time.process_time()

    assert "json" == refusal(batch, body) == refusal(lines, body)
    # Of work, whatever else the machine does: a parser that goes back at each bracket takes hours.
    assert time.process_time() - began < 10


@pytest.mark.parametrize(
    "value",
    [
        b"NaN", b"Infinity", b"-Infinity", b"1e400", b"-1e400", b"1" * (MAX_DIGITS + 1),
        b"-" + b"1" * (MAX_DIGITS + 1), b"0." + b"1" * 100, b"01", b"+1", b".5", b"1.",
        b'{"a": 1, "a": 1}', b'{"a": 1, "\\u0061": 2}', b'"\\ud800"', b'"\\udc00\\ud800"',
        b'{"\\uDFFF": 1}', b'"\x00"', b'"\xc0\xaf"', b'"\xed\xa0\x80"', b"'a'", b"/**/1", b"\x0c1",
    ],
)  # fmt: skip
def test_t9_what_readers_take_differently_is_refused(value):
    assert refusal(batch, b"[" + value + b"]") == "json"
    assert refusal(lines, b'{"a": 1}\n[' + value + b"]") == "json"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (b"9" * MAX_DIGITS, 10**MAX_DIGITS - 1),
        (b"-" + b"9" * MAX_DIGITS, 1 - 10**MAX_DIGITS),
        (b"0.8", 0.8),
        (b"1e-400", 0.0),
        (b'"\\ud83d\\ude00"', "\U0001f600"),
        (b'"\\\\ud800"', "\\ud800"),
    ],
)
def test_t9_what_is_only_unusual_is_taken(text, value):
    assert [value] == batch(b"[" + text + b"]")


def test_t9_a_megabyte_of_digits_is_refused_quickly():
    began = time.process_time()
    for digits in (b"1" * 1_000_000, b"0." + b"1" * 1_000_000, b"1e" + b"9" * 1_000_000):
        assert refusal(batch, b"[" + digits + b"]") == "json"
    names = b",".join(b'"%d":1' % n for n in range(80_000))
    assert refusal(batch, b"{" + names + b',"79999":1}') == "json"
    assert time.process_time() - began < 3


def test_t10_a_thousand_items_are_taken_and_no_more():
    assert len(batch(b"[" + b"1," * (MAX_ITEMS - 1) + b"1]")) == MAX_ITEMS
    assert len(lines(b"1\n\n" * MAX_ITEMS)) == MAX_ITEMS
    assert refusal(batch, b"[" + b"1," * MAX_ITEMS + b"1]") == "too-many"
    assert refusal(lines, b"1\n" * (MAX_ITEMS + 1)) == "too-many"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**17), 10**17) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=15,
)


@given(st.lists(JSON, min_size=1, max_size=5), st.booleans())
def test_ordinary_json_is_read_as_the_standard_library_reads_it(items, ascii_only):
    texts = [json.dumps(item, ensure_ascii=ascii_only).encode() for item in items]

    assert items == batch(b"[" + b",".join(texts) + b"]")
    assert items == lines(b"\n".join(texts))


@given(
    st.binary(max_size=60)
    | st.text(st.sampled_from('[]{}",:\\u d8001eE.-tNa\n\r'), max_size=60).map(str.encode)
)
def test_any_bytes_give_items_or_our_error(body):
    for read in (batch, lines):
        with suppress(RefusedError):
            assert read(body)
