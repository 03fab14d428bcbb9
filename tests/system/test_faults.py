"""The short form of `make faults`: RELIABILITY N1, F1 to F5."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.timeout(600)
def test_nothing_acknowledged_is_lost_in_a_hundred_kills() -> None:
    said = subprocess.run(
        [sys.executable, "-m", "tests.faults", "--short"],
        capture_output=True, text=True, timeout=580, check=False,
        cwd=Path(__file__).resolve().parents[2],
    )  # fmt: skip

    print(said.stdout)
    assert said.returncode == 0, said.stdout + said.stderr
