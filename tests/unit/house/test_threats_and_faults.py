"""Each threat of SECURITY.md, each fault of tests/faults/README.md has tests that are there."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from tests.faults.__main__ import KILLS
from tests.faults.cases import CASES
from tests.faults.planted import MISTAKES, NEXT_SCHEMA, Mistake

ROOT = Path(__file__).resolve().parents[3]
CASE_NAMES = {KILLS, *(case.name for case in CASES)}


def rows(document: str, letter: str) -> dict[str, list[str]]:
    """The cells of each row of `document` that begins with an id of that letter."""
    text = (ROOT / document).read_text(encoding="utf-8")
    found = re.findall(rf"(?m)^\| ({letter}\d+) \|(.*)\|$", text)
    return {ident: [cell.strip() for cell in cells.split("|")] for ident, cells in found}


THREATS = rows("SECURITY.md", "T")
FAULTS = rows("tests/faults/README.md", "F")


@cache
def functions(path: Path) -> set[str]:
    return {
        node.name
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef)
    }


def named_tests(cell: str) -> list[tuple[str, str]]:
    """(file, function) of each test that `cell` names, all of which must be there."""
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", cell)
    assert cell.count("`") == 2 * len(named), "something in backticks is no test"
    for path, name in named:
        assert name in functions(ROOT / path), f"{path} has no {name}"
    return named


def test_every_threat_and_every_fault_has_its_row() -> None:
    assert list(THREATS) == [f"T{number}" for number in range(1, 38)]
    assert list(FAULTS) == [f"F{number}" for number in range(1, 32)]


@pytest.mark.parametrize("ident", THREATS)
def test_a_threat_has_tests_that_exist_or_the_reason_why_there_is_none(ident: str) -> None:
    threat, answer, tested = THREATS[ident]

    assert threat
    assert answer
    assert named_tests(tested) or re.search(r"no test: \w+", tested)


@pytest.mark.parametrize("ident", FAULTS)
def test_a_fault_is_injected_tested_or_there_is_a_reason_why_not(ident: str) -> None:
    fault, cases, tested = FAULTS[ident]
    injected = set(cases.split("; ")) & CASE_NAMES

    assert fault
    assert named_tests(tested) or injected or cases.startswith("none: ")
    if injected:
        assert injected == set(cases.split("; ")), "a case that does not exist"


def test_every_case_is_listed_under_its_fault() -> None:
    for case in CASES:
        assert case.name in FAULTS[case.fault][1].split("; ")


@pytest.mark.parametrize("mistake", [*MISTAKES.values(), NEXT_SCHEMA], ids=lambda each: each.file)
def test_a_mistake_to_plant_has_its_place_in_the_code(mistake: Mistake) -> None:
    assert (ROOT / mistake.file).read_text().count(mistake.right) == 1
