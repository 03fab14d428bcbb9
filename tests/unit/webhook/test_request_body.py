"""The announced form and length of a body."""

from __future__ import annotations

import io
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webhook.problems import RefusedError
from webhook.request_body import NATIVE, headers, media_type, read


def test_headers_have_their_names_in_lower_case_and_a_length_only_of_its_own():
    environ = {
        "HTTP_WEBHOOK_ID": "msg_1", "CONTENT_TYPE": "text/plain", "CONTENT_LENGTH": "",
        "HTTP_CONTENT_LENGTH": "7", "HTTP_CONTENT_TYPE": "x", "REQUEST_METHOD": "POST",
    }  # fmt: skip

    assert headers(environ) == {"webhook-id": "msg_1", "content-type": "text/plain"}


class Drops:
    """A stream that gives one byte at a time and then, if told so, breaks."""

    def __init__(self, content: bytes, *, breaks: bool = False) -> None:
        self._content, self._breaks = io.BytesIO(content), breaks

    def read(self, size: int, /) -> bytes:
        byte = self._content.read(min(size, 1))
        if not byte and self._breaks:
            raise ConnectionResetError
        return byte


@pytest.mark.parametrize(
    "announced",
    [
        "application/json",
        "Application/JSON ; Charset = UTF-8",
        'application/json;charset="utf-8";profile="x"',
    ],
)
def test_json_is_announced_in_several_ways(announced):
    headers = {"content-type": announced, "content-encoding": "Identity"}

    assert media_type(headers, NATIVE) == "application/json"


def test_a_body_in_pieces_is_read_whole_and_not_beyond():
    assert read(Drops(b"abcdef"), {"content-length": "3"}, 3) == b"abc"
    assert read(Drops(b"abc"), {"content-length": "0"}, 3) == b""


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({}, "length-required"),
        ({"content-length": "3", "transfer-encoding": "chunked"}, "length-required"),
        ({"content-length": "3, 3"}, "length-required"),
        ({"content-length": "4"}, "too-large"),
    ],
)
def test_t6_bodies_of_unknown_or_too_great_length_are_refused(headers, code):
    with pytest.raises(RefusedError) as refused:
        read(Drops(b"abc"), headers, 3)

    assert code == refused.value.code


@pytest.mark.parametrize("breaks", [False, True])
def test_t6_a_body_that_ends_early_is_refused(breaks):
    with pytest.raises(RefusedError) as refused:
        read(Drops(b"ab", breaks=breaks), {"content-length": "3"}, 3)

    assert refused.value.code == "malformed"


@given(st.text(max_size=30), st.text(max_size=10), st.text(max_size=10))
def test_any_headers_are_accepted_or_refused_with_our_error(kind, encoding, length):
    headers = {"content-type": kind, "content-encoding": encoding, "content-length": length}
    with pytest.raises(RefusedError):
        media_type(headers, NATIVE)
    with suppress(RefusedError):
        assert len(read(io.BytesIO(b"x" * 10), headers, 10)) == int(length)


@pytest.mark.parametrize("name", ["content-type", "content-encoding"])
@pytest.mark.parametrize("around", ["\x1f", "\x85", "\xa0", "\x0b"])
def test_what_only_python_takes_for_space_is_none(name, around):
    headers = {"content-type": "application/json", "content-encoding": "identity"}
    headers[name] = around + headers[name]

    with pytest.raises(RefusedError):
        media_type(headers, NATIVE)
