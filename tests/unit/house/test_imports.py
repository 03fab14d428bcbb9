"""No two modules import each other, not even within functions."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for package in ("shared", "webhook", "worker", "deploy")
    for path in (ROOT / package).rglob("*.py")
}


def imported(tree: ast.AST) -> Iterator[str]:
    """Each name that is imported at run time; names for types alone tie nothing."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                within = f"{node.module}.{alias.name}"
                yield within if within in MODULES else node.module
        else:
            yield from imported(node)


def test_no_modules_import_each_other() -> None:
    graph = {
        name: {
            each for each in imported(ast.parse(path.read_text("utf-8"))) if each in MODULES
        } - {name}
        for name, path in MODULES.items()
    }  # fmt: skip

    TopologicalSorter(graph).prepare()  # raises CycleError, which names them
