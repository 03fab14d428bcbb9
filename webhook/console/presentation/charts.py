"""Charts as SVG made on the server: no script, no inline style, and a table of the same values.

The drawing is stretched to the available width; its text is HTML, so that it is not scaled. Each
span of time says its values to a pointer (`<title>`). A few values far above all others, such as
those of an import, leave the scale: they are marked, and named below the chart.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import NamedTuple

from markupsafe import Markup

from webhook.console.presentation import template_filters

_WIDTH, _HEIGHT = 600, 120
_NAMES = ("p50", "p95", "p99")
_TICKS = 5
_HIGH, _FAR = 0.9, 4.0
"""Values above _FAR times the value that the share _HIGH of all do not exceed leave the scale."""
_MARKED = 3
"""Values above the scale that are named."""
_DAY_S = 86_400


class Point(NamedTuple):
    """The latencies (ms) of one span of time, which began at `minute` (s since 1970)."""

    minute: int
    p50: float
    p95: float
    p99: float


class Window(NamedTuple):
    """Begin of the first and the last span shown (s since 1970), and the length of each (s)."""

    first: int
    last: int
    step: int

    def x(self, at: float) -> float:
        """Return where the span that began at `at` is drawn: its middle."""
        return (at - self.first + self.step / 2) / (self.last - self.first + self.step) * _WIDTH

    @property
    def width(self) -> float:
        """Width of a span in the drawing."""
        return self.step / (self.last - self.first + self.step) * _WIDTH

    def clock(self, at: float) -> str:
        """Return the time `at`, with its day if the window is longer than one."""
        form = "%a %H:%M" if self.last - self.first > _DAY_S else "%H:%M"
        return datetime.fromtimestamp(at, UTC).strftime(form)


class Series(NamedTuple):
    """The series of a chart: their `names`, which are CSS classes, too, the `unit` of their values,
    which `say` formats, and whether they are drawn as bars, the later ones within the earlier.
    """

    names: Sequence[str]
    unit: str
    say: Callable[[float], str]
    bars: bool = False


def latency(
    points: Sequence[tuple[float, ...]], title: str, ident: str, window: Window | None = None
) -> Markup:
    """Return the latencies of some spans of time, in order, as three lines; empty without points.

    `ident` is unique on the page. A span without latencies is missing and interrupts the lines.
    """
    return _chart(points, Series(_NAMES, "ms", template_filters.ms), title, ident, window)


def counts(
    points: Sequence[tuple[int, ...]], names: Sequence[str], title: str, ident: str,
    window: Window | None = None,
) -> Markup:  # fmt: skip
    """Return the counts of each span as a chart like `latency`, with a bar for each of `names`."""
    return _chart(
        points,
        Series(names, "", lambda n: f"{n:,.0f}" if n >= 10 else f"{n:.2g}", True),
        title,
        ident,
        window,
    )


def _chart(
    points: Sequence[tuple[float, ...]], series: Series, title: str, ident: str,
    window: Window | None,
) -> Markup:  # fmt: skip
    if not points:
        return Markup("")
    names, unit, say, _ = series
    window = window or Window(int(points[0][0]), int(points[-1][0]), 60)
    top = scale([value for point in points for value in point[1:]])
    above = [point for point in points if max(point[1:]) > top]
    begun, *newest = points[-1]
    said = ", ".join(
        f"{name} {_plain(value)} {unit}".rstrip() for name, value in zip(names, newest, strict=True)
    )
    draw = _bars if series.bars else _lines
    span, end = window.last - window.first, window.last + window.step
    return _FIGURE.format(
        title=title, id=ident, width=_WIDTH, height=_HEIGHT, middle=_HEIGHT // 2,
        drawn=Markup("").join(
            (*draw(points, names, top, window), *_marks(above, window),
             *_hovers(points, series, window))
        ),
        desc=f"From {window.clock(window.first)} to {window.clock(end)} UTC; last: {said}, at "
             f"{window.clock(begun)}",
        top=say(top), half=say(top / 2),
        ticks=Markup("").join(
            Markup("<span>{}</span>").format(window.clock(window.first + span * n / (_TICKS - 1)))
            for n in range(_TICKS)
        ),
        above=_named(above, series, window),
        keys=Markup("").join(
            Markup('<li><span class="key {0}"></span>{0} <b>{1}</b></li>').format(name, say(value))
            for name, value in zip(names, newest, strict=True)
        ),
        heads=Markup("").join(
            Markup('<th scope="col">{}</th>').format(f"{name} {unit}".rstrip()) for name in names
        ),
        rows=Markup("").join(_row(window.clock(at), *values) for at, *values in reversed(points)),
    )  # fmt: skip


def scale(values: Sequence[float]) -> float:
    """Return the upper end of the scale: above all values, unless a few are far above the rest."""
    highest = max(values)
    some = sorted(value for value in values if value > 0)
    usual = some[math.ceil(len(some) * _HIGH) - 1] if some else highest
    return nice(max((value for value in some if value <= usual * _FAR), default=highest))


def _lines(
    points: Sequence[tuple[float, ...]], names: Sequence[str], top: float, window: Window
) -> Iterator[Markup]:
    for at, name in enumerate(names, 1):
        joined, alone = _path(points, at, top, window)
        yield Markup('<path class="line {}" d="{}"/>').format(name, joined)
        if alone:
            yield Markup('<path class="dot {}" d="{}"/>').format(name, alone)


def _bars(
    points: Sequence[tuple[float, ...]], names: Sequence[str], top: float, window: Window
) -> Iterator[Markup]:
    for at, name in enumerate(names, 1):
        width = window.width * (0.9 if at == 1 else 0.5)
        parts = []
        for point in points:
            if point[at]:
                height = max(_HEIGHT * min(point[at] / top, 1), 1.5)
                x = window.x(point[0]) - width / 2
                parts.append(f"M{x:.1f} {_HEIGHT}v-{height:.1f}h{width:.2f}v{height:.1f}z")
        yield Markup('<path class="bars {}" d="{}"/>').format(name, "".join(parts))


def _path(
    points: Sequence[tuple[float, ...]], at: int, top: float, window: Window
) -> tuple[str, str]:
    """Return the lines through series `at`, and the points that none leads to: they would not be
    seen.
    """
    runs = list[list[str]]()
    before = -math.inf
    for point in points:
        y = _HEIGHT * (1 - min(point[at] / top, 1))
        if point[0] - before > window.step:
            runs.append([])
        runs[-1].append(f"{window.x(point[0]):.1f} {y:.1f}")
        before = point[0]
    joined = "".join("M" + "L".join(run) for run in runs if len(run) > 1)
    return joined, "".join(f"M{run[0]}h0" for run in runs if len(run) == 1)


def _marks(above: Sequence[tuple[float, ...]], window: Window) -> Iterator[Markup]:
    """Yield a triangle at the upper end for each value that leaves the scale."""
    for point in above:
        x = window.x(point[0])
        yield Markup('<path class="above" d="M{:.1f} 0l-5 7h10z"/>').format(x)


def _hovers(
    points: Sequence[tuple[float, ...]], series: Series, window: Window
) -> Iterator[Markup]:
    for at, *values in points:
        pairs = zip(series.names, values, strict=True)
        said = ", ".join(f"{name} {series.say(value)}" for name, value in pairs)
        yield Markup(
            '<rect class="hover" x="{:.1f}" width="{:.2f}" height="{}"><title>{}</title></rect>'
        ).format(window.x(at) - window.width / 2, window.width, _HEIGHT,
                 f"{window.clock(at)} UTC: {said}")  # fmt: skip


def _named(above: Sequence[tuple[float, ...]], series: Series, window: Window) -> Markup:
    if not above:
        return Markup("")
    highest = sorted(above, key=lambda point: -max(point[1:]))
    said = ", ".join(
        f"{series.say(max(values))} at {window.clock(at)}" for at, *values in highest[:_MARKED]
    )
    more = f" and {len(above) - _MARKED} more" if len(above) > _MARKED else ""
    return Markup('<p class="quiet over">\u25b2 Above the scale: {}{}</p>').format(said, more)


@lru_cache(8_192, typed=True)
def _row(when: str, *values: float) -> Markup:
    """Return a row of the table. Cached: a live page has the same rows again and again, and
    formatting them was most of its cost.
    """
    row = Markup("<tr><th scope=row>{}</th>") + Markup("<td>{}</td>") * len(values)
    return row.format(when, *map(_plain, values)) + Markup("</tr>")


def _count(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def _plain(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:,.1f}"


def spark(values: Sequence[float], label: str, *, titled: bool = False) -> Markup:
    """Return a row of small bars, one for each value; `label` describes them in words, also to a
    pointer if it is `titled`.
    """
    return _spark(tuple(values), label, titled=titled)


@lru_cache(2_048)
def _spark(values: tuple[float, ...], label: str, *, titled: bool) -> Markup:
    top = max(values, default=0) or 1
    title = Markup("<title>{}</title>").format(label) if titled else ""
    bars = "".join(
        f"M{at * 5} 24v-{max(24 * value / top, 0.5):.1f}h4V24z" for at, value in enumerate(values)
    )
    return Markup(
        '<svg class="spark" role="img" aria-label="{}" viewBox="0 0 {} 24"'
        ' preserveAspectRatio="none">{}<path d="{}"/></svg>'
    ).format(label, max(len(values) * 5 - 1, 1), title, bars)


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


_FIGURE = Markup("""\
<figure class="chart">
<figcaption>{title}</figcaption>
<ul class="keys">{keys}</ul>
<div class="plot">
<div class="scale" aria-hidden="true"><span>{top}</span><span>{half}</span><span>0</span></div>
<svg role="img" aria-labelledby="chart-{id}-title chart-{id}-desc"
 viewBox="0 0 {width} {height}" preserveAspectRatio="none">
<title id="chart-{id}-title">{title}</title><desc id="chart-{id}-desc">{desc}</desc>
<path class="grid" d="M0 0H{width}M0 {middle}H{width}M0 {height}H{width}"/>{drawn}</svg>
</div>
<div class="clock" aria-hidden="true">{ticks}</div>
{above}
<details id="chart-{id}-table"><summary>As a table</summary>
<div class="scroll" tabindex="0" role="group" aria-label="{title}, as a table"><table>
<thead><tr><th scope="col">From (UTC)</th>{heads}</tr></thead>
<tbody>{rows}</tbody></table></div></details>
</figure>
""")
