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


LONG = (
    "system/test_bench.py", "integration/worker/test_celery_commands.py",
    "integration/worker/test_loops.py", "system/test_sent_alerts.py",
    "system/test_stalled_clients.py", "system/test_faults.py", "scale/test_setups.py",
    "system/test_faults_planted.py", "integration/webhook/test_openapi_conformance.py",
    "system/test_console.py", "system/test_documents.py", "system/test_outputs.py",
    "system/test_backup.py", "system/test_live_configuration.py", "system/test_main_job.py",
    "integration/deploy/test_up.py", "integration/worker/test_schedules.py",
    "integration/worker/test_state_machine.py", "system/test_installation.py",
    "unit/worker/sources/",
)  # fmt: skip
"""What takes a minute and more of one tester. First the benchmark, beside tests that mostly wait:
those of a processor come after them.
"""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with LONG: a file belongs to one tester (--dist loadfile), and none shall end alone."""
    here = ROOT / "tests"

    def rank(item: pytest.Item) -> int:
        file = item.path.relative_to(here).as_posix() if item.path.is_relative_to(here) else ""
        return next((n for n, long in enumerate(LONG) if file.startswith(long)), len(LONG))

    ranks = {path: rank(item) for path, item in {item.path: item for item in items}.items()}
    items.sort(key=lambda item: ranks[item.path])


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
