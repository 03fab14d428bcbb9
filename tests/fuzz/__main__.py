"""Fuzz the parsers: `python -m tests.fuzz [--runs N] [--seed N] [target ...]` (`make fuzz`).

Each target runs in a process of its own, guided by coverage (atheris). An input that breaks a rule
is kept in ./fuzz-findings beside what was said about it, and the exit code is 1.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.fuzz.targets import TARGETS

FOUND = Path("fuzz-findings")
RUNS = 1_000_000


def main() -> int:
    """Fuzz the targets named, all by default; 1 if anything was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="TARGET", help=f"of {', '.join(TARGETS)}")
    parser.add_argument("--runs", type=int, default=RUNS, help="inputs for each target")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if unknown := set(options.names) - set(TARGETS):
        parser.error(f"unknown: {', '.join(sorted(unknown))}; there are: {', '.join(TARGETS)}")
    clean = [fuzz(name, options.runs, options.seed) for name in options.names or TARGETS]
    return 0 if all(clean) else 1


def fuzz(name: str, runs: int, seed: int) -> bool:
    """Fuzz one target; whether nothing was found."""
    began = time.monotonic()
    command = [sys.executable, "-m", "tests.fuzz.inside", name, str(runs), str(seed)]
    memory = "/dev/shm" if Path("/dev/shm").is_dir() else None
    with tempfile.TemporaryDirectory(prefix="sitemapd-fuzz-", dir=memory) as scratch:
        environment = {**os.environ, "TMPDIR": scratch}
        done = subprocess.run(command, capture_output=True, check=False, env=environment)
    said = (done.stdout + done.stderr).decode(errors="replace")
    inputs = re.findall(r"(?:^#|number_of_executed_units: )(\d+)", said, re.MULTILINE) or ["0"]
    took = time.monotonic() - began
    clean = done.returncode == 0 and int(inputs[-1]) >= runs
    what = "nothing found" if clean else f"FOUND, see {FOUND}/{name}.txt"
    print(f"{name:10} {int(inputs[-1]):>10,} inputs {took:6.0f} s  {what}", flush=True)
    if not clean:
        FOUND.mkdir(exist_ok=True)
        (FOUND / f"{name}.txt").write_text(said, encoding="utf-8")
    return clean


if __name__ == "__main__":
    sys.exit(main())
