"""Edits of TOML text that leave every other byte as it is: comments, order and spelling.

A table is added and removed as the lines it has. A value in another notation (an inline table,
dotted keys) is edited by tomlkit.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import tomlkit
from tomlkit.exceptions import TOMLKitError

from shared.errors import Fault, InvalidError

_LINE = re.compile(r"[^\n]*\n|[^\n]+")
TablePath = tuple[str, ...]
"""The names of a table and of those around it."""


class _Statement(NamedTuple):
    """One statement: a header (the path of its table), a value, or (neither) blank or comment."""

    lines: tuple[str, ...]
    header: TablePath | None = None
    value: bool = False

    @property
    def blank(self) -> bool:
        return self.header is None and not "".join(self.lines).strip()


def add_table(text: str, path: TablePath, values: Mapping[str, Any]) -> str:
    """Return `text` with the table `path`, behind those it belongs to. Raises InvalidError."""
    wanted = _changed(text, path, values)
    for edit in (_add_lines, _add_inline):
        edited = edit(text, path, values)
        if _means(edited, wanted):
            return edited
    raise _uneditable(path)


def remove_table(text: str, path: TablePath) -> str:
    """Return `text` without the table `path` and those in it. Raises InvalidError."""
    wanted = _changed(text, path, None)
    # The table around the last one is gone with its lines.
    without = {name: value for name, value in wanted.items() if name != path[0] or value}
    for edit in (_remove_lines, _remove_inline):
        edited = edit(text, path)
        if _means(edited, wanted) or _means(edited, without):
            return edited
    raise _uneditable(path)


def _uneditable(path: TablePath) -> InvalidError:
    detail = "is written in a way that no command can edit: change the file by hand"
    return InvalidError(Fault(".".join(path), "config", detail))


def _changed(text: str, path: TablePath, values: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the values that the edited text must have, and no others."""
    found: dict[str, Any] = tomllib.loads(text)
    table = found
    for name in path[:-1]:
        table = table.setdefault(name, {})
        if not isinstance(table, dict):
            raise _uneditable(path)
    if values is None:
        del table[path[-1]]
    else:
        table[path[-1]] = dict(values)
    return found


def _means(text: str, wanted: Mapping[str, Any]) -> bool:
    """True if `text` has these values and no others."""
    try:
        return tomllib.loads(text) == wanted
    except tomllib.TOMLDecodeError:
        return False


def _add_lines(text: str, path: TablePath, values: Mapping[str, Any]) -> str:
    statements = _statements(text)
    ends = (_end(statements, path[:length]) for length in range(len(path) - 1, 0, -1))
    at = next((end for end in ends if end is not None), len(statements))
    before = "".join("".join(each.lines) for each in statements[:at])
    after = "".join("".join(each.lines) for each in statements[at:])
    if before and not before.endswith("\n"):
        before += "\n"
    gap = "" if not before or before.endswith("\n\n") else "\n"
    rest = after if not after or after.startswith(("\n", "\r")) else f"\n{after}"
    return before + gap + table_text(path, values) + rest


def table_text(path: TablePath, values: Mapping[str, Any]) -> str:
    """Return the lines of a table."""
    header = ".".join(tomlkit.key(name).as_string() for name in path)
    lines = [f"{name} = {_literal(value)}\n" for name, value in values.items()]
    return f"[{header}]\n" + "".join(lines)


def _literal(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        # JSON escapes are TOML's, but for half surrogate pairs and DEL.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, Sequence):
        return "[" + ", ".join(map(_literal, value)) + "]"
    return str(value)


def _end(statements: Sequence[_Statement], path: TablePath) -> int | None:
    """Return where the last table in or below `path` ends; None if there is none."""
    owner: TablePath = ()
    last = None
    for at, each in enumerate(statements):
        owner = owner if each.header is None else each.header
        if owner[: len(path)] == path and (each.header is not None or each.value):
            last = at + 1
    if last is None:
        return None
    return last + _own_remarks(statements[last:])


def _own_remarks(statements: Sequence[_Statement]) -> int:
    """Return how many comments behind the last value of a table belong to it: those before the
    first blank line. Without one they may belong to the table that follows.
    """
    for at, each in enumerate(statements):
        if each.blank:
            return at
        if each.header is not None or each.value:
            return 0
    return len(statements)


def _remove_lines(text: str, path: TablePath) -> str:
    statements, kept = _statements(text), list[_Statement]()
    at = 0
    while at < len(statements):
        each = statements[at]
        if each.header is None or each.header[: len(path)] != path:
            kept.append(each)
            at += 1
            continue
        at += 1
        rest = statements[at:]
        length = next((n for n, one in enumerate(rest) if one.header is not None), len(rest))
        last = max((n + 1 for n, one in enumerate(rest[:length]) if one.value), default=0)
        at += last + _own_remarks(rest[last:])
        if kept and kept[-1].blank and at < len(statements) and statements[at].blank:
            at += 1
    return "".join("".join(each.lines) for each in kept)


def _statements(text: str) -> list[_Statement]:
    """Return the statements of valid TOML: a value ends at the first line with which it parses."""
    # Not splitlines: other characters that end a line may stand in texts and comments.
    found, lines, at = list[_Statement](), _LINE.findall(text), 0
    while at < len(lines):
        bare = lines[at].strip()
        if not bare or bare.startswith("#"):
            found.append(_Statement((lines[at],)))
            at += 1
            continue
        end = at + 1
        while not _parses("".join(lines[at:end])) and end < len(lines):
            end += 1
        some = tuple(lines[at:end])
        header = _header("".join(some)) if bare.startswith("[") else None
        found.append(_Statement(some, header, header is None))
        at = end
    return found


def _parses(text: str) -> bool:
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return False
    return True


def _header(line: str) -> TablePath:
    """Return the path that a header names."""
    path, table = [], tomllib.loads(line)
    while table:
        ((name, inner),) = table.items()
        path.append(name)
        table = inner[0] if isinstance(inner, list) else inner
    return tuple(path)


def _add_inline(text: str, path: TablePath, values: Mapping[str, Any]) -> str:
    try:
        document = tomlkit.parse(text)
        table: Any = document
        for name in path[:-1]:
            table = table.setdefault(name, {})
        table[path[-1]] = dict(values)
        return document.as_string()
    except (TOMLKitError, KeyError, TypeError, ValueError, AttributeError):
        return ""


def _remove_inline(text: str, path: TablePath) -> str:
    try:
        document = tomlkit.parse(text)
        table: Any = document
        for name in path[:-1]:
            table = table[name]
        del table[path[-1]]
        return document.as_string()
    except (TOMLKitError, KeyError, TypeError, ValueError, AttributeError):
        return ""
