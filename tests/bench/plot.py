"""`python -m tests.bench.plot FIGURES.json PLOT.svg`: one changed URL, beside its peers, as bars.

The axis is logarithmic. Colours follow the reader's light or dark scheme.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import pygal
from lxml import etree
from pygal.style import Style

_ROW = re.compile(r"(?P<what>one changed URL of [\d,]+)(?P<cpu>, CPU time)?: (?P<peer>.*)")
_TIMES = re.compile(r", (once|thrice)$")
_LIGHT = Style(
    background="#ffffff", plot_background="#ffffff", foreground="#24292f",
    foreground_strong="#24292f", foreground_subtle="#d0d7de", opacity="1", opacity_hover="1",
    colors=("#0969da", "#bf8700"), font_family="system-ui, sans-serif", title_font_size=20,
    label_font_size=15, major_label_font_size=15, value_font_size=14, legend_font_size=15,
)  # fmt: skip
_AXIS = {1: "1 ms", 10: "10 ms", 100: "0.1 s", 1e3: "1 s", 1e4: "10 s", 1e5: "100 s", 1e6: ""}
_RULES = """inline:
.pygal-chart .text-overlay text.value { text-anchor: start !important; transform: translateX(5px) }
.pygal-chart .guide.line { stroke: #d0d7de !important }
@media (prefers-color-scheme: dark) {
  .pygal-chart .background { fill: #0d1117 !important }
  .pygal-chart text { fill: #e6edf3 !important }
  .pygal-chart .axis .guide.line, .pygal-chart .axis .line { stroke: #30363d !important }
  .pygal-chart .color-0 { fill: #4493f8 !important; stroke: #4493f8 !important }
  .pygal-chart .color-1 { fill: #d29922 !important; stroke: #d29922 !important }
}"""


class Bar(NamedTuple):
    """One bar, in ms; `ratio` to that of sitemapd."""

    label: str
    value: float
    ratio: float | None = None


def main() -> None:
    """Read the figures, write the plot."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.plot", description=__doc__)
    parser.add_argument("figures", type=Path)
    parser.add_argument("plot", type=Path)
    options = parser.parse_args()
    document = json.loads(options.figures.read_text(encoding="utf-8"))
    options.plot.write_text(drawn(document["figures"]), encoding="utf-8")


def drawn(figures: Iterable[Mapping[str, Any]]) -> str:
    """The plot of the rows of one changed URL among `figures`, as SVG."""
    rows = [(found, row) for row in figures if (found := _ROW.fullmatch(row["name"]))]
    if not rows:
        raise SystemExit("no rows of one changed URL: run python -m tests.bench peers")
    chart = pygal.HorizontalBar(
        style=_LIGHT, css=["file://style.css", "file://graph.css", _RULES], js=(),
        title=f"{rows[0][0]['what'].replace('one', 'One', 1)}: the cost of listing the change",
        logarithmic=True, print_values=True, print_values_position="top", width=1_000, height=560,
        legend_at_bottom=True, legend_at_bottom_columns=2, disable_xml_declaration=True,
        show_x_guides=False, show_y_guides=True, no_prefix=True, value_formatter=_readable,
        truncate_label=-1, truncate_legend=-1, margin=24, margin_right=110, range=(1, 1e6), zero=1,
    )  # fmt: skip
    chart.y_labels = [{"value": at, "label": label} for at, label in _AXIS.items()]
    chart.add_xml_filter(_without_script)
    for name, cpu in (("time", False), ("CPU time of all processes", True)):
        bars = _bars([row for found, row in rows if bool(found["cpu"]) is cpu])
        chart.x_labels = [bar.label for bar in reversed(bars)]
        chart.add(name, [_labelled(bar) for bar in reversed(bars)])
    return str(chart.render(is_unicode=True))


def _without_script(root: Any) -> Any:
    """The picture alone: equal figures give equal bytes."""
    for node in [*root.iter("{*}script"), *root.iter(etree.Comment)]:
        node.getparent().remove(node)
    return root


def _bars(rows: list[Mapping[str, Any]]) -> list[Bar]:
    """Sitemapd, then its peers."""
    ours = Bar("sitemapd", median(row["baseline"] for row in rows))
    peers = [
        Bar(_TIMES.sub("", row["name"].split(": ", 1)[1]), row["value"], row["ratio"])
        for row in rows
    ]
    return [ours, *peers]


def _labelled(bar: Bar) -> dict[str, Any]:
    ratio = f" ({bar.ratio:,.0f}x)" if bar.ratio else ""
    return {"value": bar.value, "formatter": lambda value: _readable(value) + ratio}


def _readable(value: float) -> str:
    return f"{value:.3g} ms" if value < 1_000 else f"{value / 1_000:,.3g} s"


if __name__ == "__main__":
    main()
