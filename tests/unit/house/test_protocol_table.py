"""Each rule of the protocol has its row in tests/PROTOCOL.md, with tests that are there."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
COUNTS = {
    "F": 16, "L": 11, "M": 9, "N": 10, "R": 11, "U": 8, "H": 8, "I": 3, "V": 11, "W": 11,
}  # fmt: skip
RULES = [*(f"{letter}{n}" for letter, of in COUNTS.items() for n in range(1, of + 1)), "C0"]
PUBLISHING = [f"O{n}" for n in range(1, 10)]
DECISIONS = [f"C{n}" for n in range(1, 21)]

_ROW = re.compile(r"(?m)^\| ([A-Z]\d+) \| (.*) \|$")
_TEST = re.compile(r"`(tests/[\w/]+\.py)::(test_\w+)`")
_CITED = re.compile(r"PROTOCOL ([A-Z]\d+(?:(?:, | and | to |, and )[A-Z]\d+)*)")


def cells() -> list[tuple[str, list[str]]]:
    """Each row of the document that begins with an id."""
    text = (ROOT / "tests" / "PROTOCOL.md").read_text(encoding="utf-8")
    return [(ident, rest.split(" | ")) for ident, rest in _ROW.findall(text)]


ROWS = {ident: rest for ident, rest in cells() if ident not in DECISIONS}
DECIDED = {ident: rest for ident, rest in cells() if ident in DECISIONS}


@cache
def collected(path: Path) -> frozenset[str]:
    """The tests of a file: functions of the module and methods of its Test classes."""
    found = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        inside = node.body if isinstance(node, ast.ClassDef) and node.name[:4] == "Test" else [node]
        found |= {each.name for each in inside if isinstance(each, ast.FunctionDef)}
    return frozenset(found)


def docstrings() -> Iterator[tuple[Path, str]]:
    """Every docstring of the tests, with its file."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
    for path in sorted((ROOT / "tests").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, documented) and (text := ast.get_docstring(node)):
                yield path, text


def test_every_rule_has_one_row_in_its_order() -> None:
    assert [ident for ident, _ in cells()] == [*RULES, *PUBLISHING, *DECISIONS]
    assert len(RULES) == 99


@pytest.mark.parametrize("ident", ROWS)
def test_a_rule_has_tests_that_exist_or_the_reason_why_there_is_none(ident: str) -> None:
    rule, tested = ROWS[ident]
    named = _TEST.findall(tested)

    assert len(rule) > 3
    assert named or re.match(r"no test: \w+", tested)
    for path, name in named:
        assert name in collected(ROOT / path), f"{path} has no {name}"
    left = _TEST.sub("", tested)
    assert "tests/" not in left, "something that looks like a test is named in another way"


@pytest.mark.parametrize("ident", DECIDED)
def test_a_decision_is_part_of_rules_that_have_their_rows(ident: str) -> None:
    decided, rules = DECIDED[ident]

    assert decided
    assert set(rules.split(", ")) <= set(RULES)


def test_every_rule_that_a_test_cites_is_in_the_table() -> None:
    cited = [
        (path.name, ident)
        for path, text in docstrings()
        for found in _CITED.findall(" ".join(text.split()))
        for ident in re.findall(r"[A-Z]\d+", found)
    ]

    assert len(cited) > 100
    assert [each for each in cited if each[1] not in {*ROWS, *DECIDED}] == []
