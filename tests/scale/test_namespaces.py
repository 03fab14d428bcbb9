"""Hosts in network namespaces, with the commands and scripts of deploy/: nothing is lost."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.conftest import ROOT


@pytest.mark.scale
@pytest.mark.timeout(400)
@pytest.mark.parametrize("program", ["partitions", "kubernetes_state"])
def test_hosts_that_are_cut_off_killed_and_upgraded_lose_nothing(program: str) -> None:
    if os.geteuid():
        pytest.skip("only root may make network namespaces")

    done = subprocess.run(
        [sys.executable, "-m", f"tests.scale.{program}", *["8"] * (program == "partitions")],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=350,
    )  # fmt: skip

    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
