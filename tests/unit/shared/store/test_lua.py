"""The Lua scripts hand no list to `unpack` that may be longer than Lua can pass (F27)."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

import pytest

MOST = 4_000
"""Lua in Redis passes less than 8,000 values in one call, and a command may want two of each."""

UNPACK = re.compile(r"(?<![\w.])unpack\b(.*)")
PARTS = "(values, i, math.min(i + PART - 1, #values))"
BOUNDED = re.compile(r"\((\w+), 1, math\.min\(#\1, (\d+)\)\)")
SCRIPTS = sorted(
    (path.name, path.read_text(encoding="utf-8"))
    for path in Path(str(files("shared.store"))).rglob("*.lua")
)


def _unpacked(text: str) -> list[str]:
    return [match[1] for match in UNPACK.finditer(re.sub(r"--.*", "", text))]


@pytest.mark.parametrize(("name", "text"), SCRIPTS, ids=[name for name, _ in SCRIPTS])
def test_every_unpack_is_bounded(name: str, text: str) -> None:
    for what in _unpacked(text):
        bounded = BOUNDED.match(what)
        assert (name, what[: len(PARTS)]) == ("in_parts.lua", PARTS) or (
            bounded is not None and int(bounded[2]) <= MOST
        ), f"{name}: unpack{what}"


def test_the_parts_are_small_enough() -> None:
    (text,) = (text for name, text in SCRIPTS if name == "in_parts.lua")
    part = re.search(r"^local PART = (\d+)$", text, re.MULTILINE)

    assert part is not None
    assert int(part[1]) <= MOST
    assert int(part[1]) % 2 == 0, "pairs would be torn"
    assert len(_unpacked(text)) == 1


@pytest.mark.parametrize(
    "line", ["f(unpack(many))", "f(unpack(many, 1, #many))", "local g = unpack"]
)
def test_an_unbounded_unpack_would_be_found(line: str) -> None:
    (what,) = _unpacked(line)

    assert BOUNDED.match(what) is None
