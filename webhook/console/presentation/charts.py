"""Charts as SVG made on the server: no script, no inline style, and a table of the same values.

The drawing is stretched to the available width; its text is HTML, so that it is not scaled.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import NamedTuple

from markupsafe import Markup

from webhook.console.presentation import template_filters

_WIDTH, _HEIGHT = 600, 120
_NAMES = ("p50", "p95", "p99")


class Point(NamedTuple):
    """The latencies (ms) of one minute, which began at `minute` (s since 1970)."""

    minute: int
    p50: float
    p95: float
    p99: float


class Series(NamedTuple):
    """The lines of a chart: their `names`, which are CSS classes, too, and the `unit` of their
    values, which `say` formats.
    """

    names: Sequence[str]
    unit: str
    say: Callable[[float], str]


def latency(
    points: Sequence[Point], title: str, ident: str, window: tuple[int, int] | None = None
) -> Markup:
    """Return the latencies of some minutes, in order, as three lines; empty without points.

    `ident` is unique on the page. A minute without latencies is missing and interrupts the lines.
    `window` is the first and last minute shown (s since 1970), by default those of the points.
    """
    return _chart(points, Series(_NAMES, "ms", template_filters.ms), title, ident, window)


def counts(
    points: Sequence[tuple[int, ...]], names: Sequence[str], title: str, ident: str,
    window: tuple[int, int] | None = None,
) -> Markup:  # fmt: skip
    """Return the counts per minute as a chart like `latency`, with a line for each of `names`."""
    return _chart(points, Series(names, "", lambda value: f"{value:,.4g}"), title, ident, window)


def _chart(
    points: Sequence[tuple[float, ...]], series: Series, title: str, ident: str,
    window: tuple[int, int] | None,
) -> Markup:  # fmt: skip
    if not points:
        return Markup("")
    names, unit, say = series
    top = nice(max(max(point[1:]) for point in points))
    first, last = window or (int(points[0][0]), int(points[-1][0]))
    lines = Markup("").join(
        Markup('<path class="line {}" d="{}"/>').format(name, _path(points, at, top, first, last))
        for at, name in enumerate(names, 1)
    )
    minute, *newest = points[-1]
    said = ", ".join(
        f"{name} {_plain(value)} {unit}".rstrip() for name, value in zip(names, newest, strict=True)
    )
    return _FIGURE.format(
        title=title, id=ident, width=_WIDTH, height=_HEIGHT, lines=lines, middle=_HEIGHT // 2,
        desc=f"From {_clock(first)} to {_clock(last)} UTC; last: {said}, at {_clock(minute)}",
        top=say(top), half=say(top / 2), first=_clock(first), last=_clock(last),
        keys=Markup("").join(
            Markup('<li><span class="key {0}"></span>{0} <b>{1}</b></li>').format(name, say(value))
            for name, value in zip(names, newest, strict=True)
        ),
        heads=Markup("").join(
            Markup('<th scope="col">{}</th>').format(f"{name} {unit}".rstrip()) for name in names
        ),
        rows=Markup("").join(_row(*point) for point in reversed(points)),
    )  # fmt: skip


@lru_cache(8_192, typed=True)
def _row(when: float, *values: float) -> Markup:
    """Return a row of the table. Cached: a live page has an hour of the same rows for each of its
    sites, and formatting them was most of its cost.
    """
    row = Markup("<tr><th scope=row>{}</th>") + Markup("<td>{}</td>") * len(values)
    return row.format(_clock(when), *map(_plain, values)) + Markup("</tr>")


def _plain(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:,.1f}"


def spark(values: Sequence[float], label: str) -> Markup:
    """Return a row of small bars, one for each value; `label` describes them in words."""
    top = max(values, default=0) or 1
    bars = Markup("").join(
        Markup('<rect x="{}" y="{:.1f}" width="4" height="{:.1f}"/>').format(
            at * 5, 24 - height, height
        )
        for at, value in enumerate(values)
        for height in (max(24 * value / top, 0.5),)
    )
    return Markup(
        '<svg class="spark" role="img" aria-label="{}" viewBox="0 0 {} 24"'
        ' preserveAspectRatio="none">{}</svg>'
    ).format(label, max(len(values) * 5 - 1, 1), bars)


def bar(part: float, whole: float, label: str) -> Markup:
    """Return a bar that shows the share of `part` in `whole`; `label` describes it in words."""
    share = min(max(part / whole, 0), 1) * 100 if whole else 0
    return Markup(
        '<svg class="bar" role="img" aria-label="{}" viewBox="0 0 100 8"'
        ' preserveAspectRatio="none"><rect class="whole" width="100" height="8"/>'
        '<rect class="part" width="{:.2f}" height="8"/></svg>'
    ).format(label, share)


def nice(value: float) -> float:
    """Return the smallest of 1, 2, 5, 10, 20, ... that is not below `value`."""
    if value <= 1:
        return 1.0
    step: float = 10 ** math.floor(math.log10(value))
    return next(factor * step for factor in (1.0, 2.0, 5.0, 10.0) if value <= factor * step)


def _path(
    points: Sequence[tuple[float, ...]], at: int, top: float, first: float, last: float
) -> str:
    span = max(last - first, 60)
    parts, before = [], None
    for point in points:
        x = (point[0] - first) / span * _WIDTH
        y = _HEIGHT * (1 - point[at] / top)
        joined = before is not None and point[0] - before <= 60
        # A move alone draws nothing: a minute between two gaps is a line of no length.
        parts.append(f"{'L' if joined else 'M'}{x:.1f} {y:.1f}{'' if joined else 'h0'}")
        before = point[0]
    return "".join(parts)


def _clock(when: float) -> str:
    return datetime.fromtimestamp(when, UTC).strftime("%H:%M")


_FIGURE = Markup("""\
<figure class="chart">
<figcaption>{title}</figcaption>
<ul class="keys">{keys}</ul>
<div class="plot">
<div class="scale" aria-hidden="true"><span>{top}</span><span>{half}</span><span>0</span></div>
<svg role="img" aria-labelledby="chart-{id}-title chart-{id}-desc"
 viewBox="0 0 {width} {height}" preserveAspectRatio="none">
<title id="chart-{id}-title">{title}</title><desc id="chart-{id}-desc">{desc}</desc>
<path class="grid" d="M0 0H{width}M0 {middle}H{width}M0 {height}H{width}"/>{lines}</svg>
</div>
<div class="clock" aria-hidden="true"><span>{first}</span><span>{last} UTC</span></div>
<details id="chart-{id}-table"><summary>As a table</summary>
<div class="scroll" tabindex="0" role="group" aria-label="{title}, as a table"><table>
<thead><tr><th scope="col">Minute (UTC)</th>{heads}</tr></thead>
<tbody>{rows}</tbody></table></div></details>
</figure>
""")
