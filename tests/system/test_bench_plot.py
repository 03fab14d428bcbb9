"""The plot of the benchmark: its bars come from the figures of a run."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

FIGURES = [
    {"name": name, "value": value, "baseline": ours, "ratio": value / ours}
    for name, value, ours in (
        ("one changed URL of 1,000: lxml, all files, once", 4_500.0, 9.0),
        ("one changed URL of 1,000, CPU time: lxml, all files, once", 4_400.0, 8.0),
        ("one changed URL of 1,000, bytes: lxml, all files, once", 7.0, 7.0),
        ("drained", 9_000.0, 1.0),
    )
]


def plotted(tmp_path: Path, figures: list[dict[str, Any]]) -> subprocess.CompletedProcess[str]:
    (tmp_path / "figures.json").write_text(json.dumps({"figures": figures}))
    return subprocess.run(
        [
            sys.executable, "-m", "tests.bench.plot",
            tmp_path / "figures.json", tmp_path / "figures.svg",
        ],
        capture_output=True, text=True, check=False, cwd=Path(__file__).resolve().parents[2],
    )  # fmt: skip


def test_the_plot_shows_time_and_cpu_time_of_each_peer_with_the_ratios(tmp_path: Path) -> None:
    assert plotted(tmp_path, FIGURES).returncode == 0

    drawn = ET.parse(tmp_path / "figures.svg").getroot()
    texts = {text.text for text in drawn.iter("{http://www.w3.org/2000/svg}text")}
    assert {"sitemapd", "lxml, all files", "time", "CPU time of all processes"} <= texts
    assert {"9 ms", "8 ms", "4.5 s (500x)", "4.4 s (550x)"} <= texts


def test_equal_figures_give_an_equal_plot_without_a_script(tmp_path: Path) -> None:
    plotted(tmp_path, FIGURES)
    first = (tmp_path / "figures.svg").read_bytes()
    plotted(tmp_path, FIGURES)

    assert (tmp_path / "figures.svg").read_bytes() == first
    assert b"<script" not in first
    assert b"<!--" not in first


def test_figures_without_a_peer_are_refused(tmp_path: Path) -> None:
    said = plotted(tmp_path, FIGURES[3:])

    assert said.returncode == 1
    assert "run python -m tests.bench peers" in said.stderr
