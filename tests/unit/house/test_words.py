"""Heads and docstrings say what something does, in the words of the glossary."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

import pytest

from tests.unit.house.test_house import MODULES, name

RIDDLE = re.compile(
    r"(What|How|Who|Whose|Which|Where|When|Whether|Why|Is|Are|Does|Did|Has|By)\b", re.IGNORECASE
)
VERB_FORMS = re.compile(r"(contract|helpers?|utils?|common|misc|base|[a-z]+ing)")
NOUNS = {"routing", "tracing", "bing"}
"""End in -ing and name a thing of the field."""


def _docstrings(path: Path) -> list[tuple[str, str]]:
    """The first line of the docstring of the module and of everything public in it."""
    tree = ast.parse(path.read_text())
    found = [("module", ast.get_docstring(tree) or "")]
    found += [
        (node.name, ast.get_docstring(node) or "")
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and not node.name.startswith("_")
    ]
    return [(where, said.split("\n")[0]) for where, said in found]


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_a_first_line_is_no_riddle(path: Path) -> None:
    """An imperative or a noun phrase (HOUSE 3)."""
    riddles = [(where, said) for where, said in _docstrings(path) if RIDDLE.match(said)]

    assert riddles == []


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_a_module_is_called_by_what_it_holds(path: Path) -> None:
    assert path.stem in NOUNS or not VERB_FORMS.fullmatch(path.stem)


def test_no_two_public_classes_share_a_name() -> None:
    names = Counter(
        node.name
        for path in MODULES
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )

    assert [each for each, times in names.items() if times > 1] == []
