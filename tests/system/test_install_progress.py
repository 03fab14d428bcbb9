"""`make up` says what it installs from the first second, and what pip said if that fails."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.system.terminal import Terminal

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = [sys.executable, str(ROOT / "deploy" / "local" / "install_progress.py")]
PIP = """
import sys
print("Obtaining file:///here", flush=True)
print("Collecting celery<5.8 (from x)", flush=True)
print("  Downloading celery-5.7.whl (400 kB)", flush=True)
print("Processing /wheels/lxml-6.1-cp311.whl (from sitemapd)", flush=True)
print("Requirement already satisfied: redis in there", flush=True)
sys.stdin.readline()
print("Installing collected packages: vine, celery, sitemapd", flush=True)
sys.stdin.readline()
print("Successfully installed celery-5.7 sitemapd-0.1.0 vine-5.1.0", flush=True)
"""


def test_a_terminal_shows_each_stage_while_pip_is_at_it(tmp_path: Path) -> None:
    terminal = Terminal([*PROGRAM, sys.executable, "-c", PIP], tmp_path)
    try:
        terminal.until(r"\Ainstalling what sitemapd needs \.\.\.\n")
        terminal.until(r"fetching packages: 3, redis \.\.\. \d+ s")
        terminal.type("\n")
        terminal.until(r"installing 3 packages \.\.\. \d+ s")
        terminal.type("\n")
        terminal.until(r"installed 3 packages in \d+ s\n")
        assert terminal.process.wait(60) == 0
    finally:
        terminal.close()


def test_a_log_gets_two_lines() -> None:
    done = subprocess.run(
        [*PROGRAM, sys.executable, "-c", PIP],
        input="\n\n", capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip

    assert done.stdout.splitlines()[0] == "installing what sitemapd needs ..."
    assert done.stdout.splitlines()[1].startswith("installed 3 packages in ")
    assert len(done.stdout.splitlines()) == 2


def test_an_installation_that_fails_shows_all_that_pip_said() -> None:
    failing = "print('Collecting x'); print('ERROR: no space'); raise SystemExit(3)"
    done = subprocess.run(
        [*PROGRAM, sys.executable, "-c", failing],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip

    assert (done.returncode, "ERROR: no space\n" in done.stdout) == (3, True)
