"""What the console makes of a check's words: commands that can be run, files that can be opened."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.main import get_command

from deploy.cli.program import app
from shared.config.sites.site import Site
from shared.store.operations.checks import (
    CheckFinding,
    CheckReport,
    ComparisonSummary,
    FindingSample,
)
from webhook.console.presentation import check_results
from worker.checks import catalog
from worker.checks.progress import CheckTally

FINDINGS = {
    each.check: each
    for source in (True, False)
    for compared in (None, ComparisonSummary(1, 1, 1, 1, {}, "it broke off"))
    for each in (
        *catalog.findings(CheckTally(), served=True),
        *catalog.of_source(compared, configured=source),
    )
}


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(  # type: ignore[call-arg]
        base_url="https://www.example.com/blog/", web_root=tmp_path, tokens=("t" * 20,),  # type: ignore[arg-type]
        sections={"posts": {"split": "month"}},  # type: ignore[dict-item]
    )  # fmt: skip


@pytest.mark.parametrize("finding", FINDINGS.values(), ids=FINDINGS.keys())
def test_every_command_of_a_finding_is_found_and_exists(finding: CheckFinding) -> None:
    pieces = check_results.pieces(finding)
    known = get_command(app).commands  # type: ignore[attr-defined]

    assert "".join(piece for piece, _ in pieces) == finding.todo
    commands = [piece.split() for piece, runs in pieces if runs and piece.startswith("sitemapd")]
    assert [piece for piece, runs in pieces if runs] == list(finding.commands)
    assert len(commands) == len(re.findall(r"\bsitemapd [a-z]", finding.todo))
    for _, name, *rest in commands:
        assert name in known
        options = {option for each in known[name].params for option in each.opts}
        if name == "event":
            options = {o for each in known[name].commands[rest[0]].params for o in each.opts}
        assert {word for word in rest if word.startswith("--")} <= options
        assert "--site" in options
    for piece, runs in pieces:
        assert runs or "sitemapd " not in piece


def test_a_command_ends_where_the_sentence_goes_on() -> None:
    said = {
        name: [piece for piece, runs in check_results.pieces(FINDINGS[name]) if runs]
        for name in ("missing-file", "stale-news", "robots-blocked", "served", "source")
    }

    assert said == {
        "missing-file": ["sitemapd rebuild"],
        "stale-news": ["sitemapd status", "sitemapd publish"],
        "robots-blocked": ["sitemapd event send URL --type delete"],
        "served": ["curl -i URL"],
        "source": ["sitemapd verify --against SOURCE"],
    }


@pytest.mark.parametrize(
    ("where", "file"),
    [
        ("posts-2026-11.xml", "posts-2026-11.xml"),
        ("posts-2026-11-2.xml.gz", "posts-2026-11-2.xml.gz"),
        ("https://www.example.com/blog/pages-12.xml", "pages-12.xml"),
        ("https://www.example.com/blog/a/pages-1.xml", ""),
        ("https://evil.example/pages-1.xml", ""),
        ("https://www.example.com/blog/a-post-1.xml", ""),
        ("https://www.example.com/blog/a-post", ""),
        ("sitemap.xml", ""),
        ("robots.txt", ""),
        ("", ""),
    ],
)
def test_a_file_is_told_from_a_page(site: Site, where: str, file: str) -> None:
    assert check_results.file_of(site, where) == file


def test_errors_come_first_and_are_counted() -> None:
    def finding(check: str, severity: str) -> CheckFinding:
        return CheckFinding(check, severity, 1, (FindingSample("a", "b"),), "", "")

    severities = [
        ("a", "ok"),
        ("b", "warning"),
        ("c", "error"),
        ("d", "error"),
        ("missing", "error"),
    ]
    found = check_results.of_check(
        CheckReport(1, 2, "x", 3, True, tuple(finding(*s) for s in severities))
    )

    assert [each.check for each in found] == ["c", "d", "b", "a"]
    assert check_results.summary(found) == "2 errors, 1 warning"
    assert check_results.summary(found[3:]) == "nothing wrong"
    assert check_results.of_check(None) == ()


def test_what_was_repaired_differs_no_more() -> None:
    compared = ComparisonSummary(1, 3, 0, 2, {})

    assert compared.differing() == [("missing", 3), ("extra", 2)]
    assert compared._replace(repaired=True).differing() == []
