"""What every test may use: the corpus of real data."""

from __future__ import annotations

import gc
import signal
from collections import Counter
from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import settings

from tests.corpus import CORPUS

ROOT = Path(__file__).resolve().parents[1]

# No test depends on how fast it runs: the machine may be busy, or reading what is read once.
settings.register_profile("sitemapd", deadline=None)
settings.load_profile("sitemapd")

# Shells ignore SIGINT for what they start in the background, nohup ignores SIGHUP, and children
# inherit that: tests send both to processes that they start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, object, object]:
    """Undo what `sitemapd run` does to SIGHUP where a test runs the command in this process."""
    before = signal.getsignal(signal.SIGHUP)
    try:
        return (yield)
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect no garbage while tests are collected, nor look at the collected tests later: it takes
    a fifth of that time in each tester, and finds nothing.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.fixture(scope="session")
def corpus() -> Path:
    """Real sitemaps, robots.txt files and schemas; tests that need them say so where absent."""
    if not (CORPUS / "MANIFEST.tsv").exists():
        pytest.skip("the corpus of real sitemaps is not here: set SITEMAPD_CORPUS to its directory")
    return CORPUS


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say what each reason to skip has cost: how many tests did not run for it."""
    reasons = Counter(
        report.longrepr[2].removeprefix("Skipped: ")
        for report in terminalreporter.stats.get("skipped", ())
        if isinstance(report.longrepr, tuple)
    )
    if reasons:
        terminalreporter.section("not run")
        for reason, tests in reasons.most_common():
            terminalreporter.line(f"{tests} {'test' if tests == 1 else 'tests'}: {reason}")
