"""Template filters: numbers, sizes, times, commands."""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any

from markupsafe import Markup

from shared.clock import span
from shared.crawls.delays import spoken

_DATED_S = 90 * 86_400
"""Age from which a time is shown as a date."""
_SIZES = ("bytes", "KB", "MB", "GB", "TB")


def ago(when: float | str | None, now: float | None = None) -> Markup:
    """Return the time since `when` (s since 1970, or a W3C datetime), with the exact time as title.

    `now` is in seconds since 1970.
    """
    if when is None or when == "":
        return Markup('<span class="quiet">never</span>')
    try:
        moment = (
            datetime.fromisoformat(when)
            if isinstance(when, str)
            else datetime.fromtimestamp(when, UTC)
        )
    except (ValueError, OverflowError, OSError):
        return Markup("{}").format(when)
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    exact = moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    passed = (time.time() if now is None else now) - moment.timestamp()
    said = f"{span(passed)} ago" if passed >= 1 else "now" if passed > -1 else f"in {span(-passed)}"
    return Markup('<time datetime="{}" title="{}">{}</time>').format(
        moment.isoformat(), exact, said if abs(passed) < _DATED_S else exact[:10]
    )


def ms(value: float) -> str:
    """Return milliseconds with three digits, in seconds from 1,000 on."""
    return f"{value / 1000:,.3g} s" if value >= 1000 else f"{value:,.3g} ms"


def number(value: float) -> str:
    """Return a number with separators between the thousands."""
    return f"{value:,}" if isinstance(value, int) else f"{value:,.12g}"


def size(count: float) -> str:
    """Return a number of bytes in decimal units."""
    for name in _SIZES:
        if count < 1000 or name == _SIZES[-1]:
            break
        count /= 1000
    return f"{count:.0f} {name}" if name == "bytes" else f"{count:.1f} {name}"


def plural(count: int, one: str, many: str = "") -> str:
    """Return `count` with `one` in singular or plural."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def command(words: Iterable[Any]) -> str:
    """Return a command quoted for a shell."""
    return shlex.join(map(str, words))


def arrived(event: str) -> float:
    """Return when an event was accepted (s since 1970), from its id; 0 for an id without a time."""
    ms = event.partition("-")[0]
    return int(ms) / 1000 if ms.isascii() and ms.isdigit() else 0.0


def as_json(value: Any) -> str:
    """Return a nested value as indented JSON."""
    return json.dumps(value, indent=2, ensure_ascii=False)


FILTERS: dict[str, Callable[..., Any]] = {
    "ago": ago, "span": span, "number": number, "size": size, "plural": plural, "command": command,
    "delay": spoken, "json": as_json, "ms": ms, "arrived": arrived,
}  # fmt: skip
