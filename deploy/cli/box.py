"""Box of a few names and values, for the end of a start on a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from shared.visible_text import visible

_GAP = 2


def boxed(rows: Sequence[tuple[str, str]], columns: int) -> list[str]:
    """Return the lines of a box around `rows`, the first as its heading. On a terminal of
    fewer `columns` it has no sides: a value stays whole, to be copied.
    """
    (name, note), *under = [(visible(name), visible(value)) for name, value in rows]
    width = max((len(name) for name, _ in under), default=0) + _GAP
    lines = [f"{name}, {note}"]
    lines += [name.ljust(width) + value for name, value in under]
    inner = max(map(len, lines))
    if inner + 2 * _GAP > columns:
        rule = "\u2500" * (columns - 1)
        return [rule, *lines, rule]
    rule = "\u2500" * (inner + 2)
    sides = (f"\u2502 {each.ljust(inner)} \u2502" for each in lines)
    return [f"\u256d{rule}\u256e", *sides, f"\u2570{rule}\u256f"]
