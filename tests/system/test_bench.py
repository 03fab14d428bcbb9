"""`make bench` in its tiny form: every row runs and is printed; how fast is not looked at."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROWS = (
    "event to visible, 1,000 URLs, shards of 10,000",
    "of 1,000 URLs, one looked up",
    "of 1,000 URLs, those with a part",
    "event to visible, 1,000 URLs, shards of 2,000",
    "event to visible, 1,000 URLs, shards of 50,000",
    "event to visible, 100 URLs, shards of 10,000, xml.gz",
    "bytes of Redis per URL without history, 1,000 URLs, next to raw XML",
    "bytes of Redis per URL without history, 1,000 URLs, next to a hash of JSON",
    "of these: page records", "of these: blocks", "of these: shards, files and index lines",
    "one event, all its work, in a site of 1,000 URLs", "history of bounded size",
    "one URL of 1,000 edited", "applied, batches of 100", "drained", "published",
    "accepted over HTTP, signed batches",
    "the same, until the last page was in its file", "accepted over HTTP, single events",
    "POST to visible, 1,000 URLs", "accepted, single signed, 8 connections, all processes",
    "single signed, until", "accepted, batches of 100", "accepted, NDJSON of 1,000",
    "accepted, single signed, 8 connections, processing paused",
    "POST to visible on a quiet site", "p99 of these", "POST to visible on the site that takes",
    "POST to visible on a quiet site", "p99 of these", "POST to visible on the site that takes",
    "published, 1,000 events over 10 shards", "published, 200 events over 20 shards",
    "import of 1,000 URLs from NDJSON until published, once",
    "import of 1,000 URLs from NDJSON until published, once, for each CPU second",
    "peak memory of an import", "reconcile of 1,000 URLs with no differences",
    "reconcile of 1,000 URLs with 100 differences",
    "start of a worker until an event is published, 1,000 URLs",
    *(
        f"POST to visible on 50 quiet sites, beside {floods} flooded: {share}"
        for floods in (1, 5)
        for share in ("p50", "p99")
    ),
    "CPU of an idle `up` of 1 site", "memory (PSS) of an idle `up` of 1 site",
    "CPU of an idle `up` of 3 sites", "memory (PSS) of an idle `up` of 3 sites",
    "/admin/ of 3 sites", "round trips to Redis of /admin/", "commands to Redis of /admin/",
    "/metrics of 3 sites", "round trips to Redis of /metrics", "commands to Redis of /metrics",
    *(
        f"CPU time of `sitemapd {command}`"
        for command in (
            "--version", "--help", "secret", "completion zsh", "config check", "site list",
            "event example", "status",
        )
    ),
    "whole site of 1,000 written anew from the state, thrice",
    "whole site of 1,000 written anew from the state by `sitemapd rebuild`",
    *(
        f"one changed URL of 1,000{cost}: {peer}"
        for peer in ("string join + isal", "lxml + zlib 6", "sitemap.js", "Django", "WordPress")
        for cost in ("", ", CPU time", ", bytes")
    ),
)  # fmt: skip
INSTALLED = ("sitemap.js", "WordPress")
"""Peers that are left out, with the reason, where their programs are missing."""


@pytest.mark.timeout(300)
def test_every_row_of_the_benchmark_runs_and_is_printed(tmp_path: Path) -> None:
    said = subprocess.run(
        [sys.executable, "-m", "tests.bench", "--tiny", "--json", tmp_path / "figures.json"],
        capture_output=True, text=True, timeout=280, check=False,
        cwd=Path(__file__).resolve().parents[2],
    )  # fmt: skip

    assert said.returncode == 0, said.stderr
    figures = json.loads((tmp_path / "figures.json").read_text())["figures"]
    missing = [peer for peer in INSTALLED if f"left out: {peer}" in said.stdout]
    rows = [row for row in ROWS if not row.endswith(tuple(missing))]
    assert len(figures) == len(rows)
    for row, figure in zip(rows, figures, strict=True):
        assert figure["name"].startswith(row)
        assert figure["value"] > 0
        assert f"  {figure['name']}: " in said.stdout.replace("\n", " ") + " "
