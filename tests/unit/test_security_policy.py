"""SECURITY.md answers every threat, with tests that are there."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ROWS = dict(
    re.findall(r"(?m)^\| (T\d+) \|(.*)\|$", (ROOT / "SECURITY.md").read_text(encoding="utf-8"))
)


@cache
def functions(path: Path) -> set[str]:
    return {
        node.name
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef)
    }


def test_every_threat_has_its_row() -> None:
    assert list(ROWS) == [f"T{number}" for number in range(1, 34)]


@pytest.mark.parametrize("ident", ROWS)
def test_a_threat_has_tests_that_exist_or_the_reason_why_there_is_none(ident: str) -> None:
    threat, answer, tested = (cell.strip() for cell in ROWS[ident].split("|"))
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", tested)

    assert threat
    assert answer
    assert named or re.search(r"no test: \w+", tested)
    assert tested.count("`") == 2 * len(named), "something in backticks is no test"
    for path, name in named:
        assert name in functions(ROOT / path), f"{path} has no {name}"
