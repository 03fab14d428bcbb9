"""A public function that raises an error of ours says so in its docstring (HOUSE 3)."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.house.test_house import MODULES, ROOT, name

HELP = ROOT / "deploy" / "commands"
"""There a docstring is the help of a command, which names exit codes and no classes."""


def _bases() -> dict[str, set[str]]:
    """Each class of the house by name, with the names of its bases."""
    return {
        node.name: {ast.unparse(base).rpartition(".")[2] for base in node.bases}
        for path in MODULES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef)
    }


BASES = _bases()


def _lineage(error: str) -> set[str]:
    return {error}.union(*(_lineage(base) for base in BASES.get(error, ())))


def _public(node: ast.Module | ast.ClassDef) -> Iterator[ast.FunctionDef]:
    for each in node.body:
        if isinstance(each, ast.ClassDef) and not each.name.startswith("_"):
            yield from _public(each)
        elif isinstance(each, ast.FunctionDef) and not each.name.startswith("_"):
            yield each


def _raised(node: ast.AST) -> Iterator[str]:
    """The names of what the body raises itself, without functions defined in it."""
    for each in ast.iter_child_nodes(node):
        if isinstance(each, ast.FunctionDef | ast.Lambda | ast.ClassDef):
            continue
        if isinstance(each, ast.Raise) and each.exc is not None:
            error = each.exc.func if isinstance(each.exc, ast.Call) else each.exc
            yield ast.unparse(error).rpartition(".")[2]
        yield from _raised(each)


def _unnamed(source: str) -> list[str]:
    """Each function and the error of ours that it raises and does not name, nor a base of it."""
    return [
        f"{function.name}: {error}"
        for function in _public(ast.parse(source))
        for error in sorted(set(_raised(function)))
        if "SitemapdError" in _lineage(error)
        and not _lineage(error) & set(re.findall(r"\w+", ast.get_docstring(function) or ""))
    ]


@pytest.mark.parametrize("path", [p for p in MODULES if HELP not in p.parents], ids=name)
def test_a_docstring_names_the_errors_that_its_function_raises(path: Path) -> None:
    assert _unnamed(path.read_text()) == []


def test_an_error_that_is_not_named_is_found_and_one_of_python_is_not() -> None:
    source = 'def read():\n    """Return a date."""\n    raise {}("x")\n'
    named = source.replace("a date.", "a date. Raises SitemapdError.")

    assert _unnamed(source.format("errors.DateError")) == ["read: DateError"]
    assert _unnamed(source.format("ValueError")) == []
    assert _unnamed(named.format("DateError")) == []
