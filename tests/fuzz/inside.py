"""The process in which one target is fuzzed: `python -m tests.fuzz.inside TARGET RUNS SEED`.

It ends without clearing up; its parent names the directory for temporary files and removes it.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["shared", "webhook", "worker"]):
    from tests.fuzz.targets import TARGETS

FOUND = Path("fuzz-findings")
LONGEST = 4_096
SLOWEST_S = 10
"""An input of LONGEST bytes that takes longer costs too much, which is a finding as well."""


def main(name: str, runs: str, seed: str) -> None:
    """Fuzz; ends the process, with a code other than 0 at the first finding."""
    target = TARGETS[name]
    FOUND.mkdir(exist_ok=True)
    corpus = Path(tempfile.mkdtemp())
    for number, data in enumerate(target.seeds):
        (corpus / str(number)).write_bytes(data)
    options = {
        "runs": runs, "seed": seed, "max_len": LONGEST, "timeout": SLOWEST_S,
        "rss_limit_mb": 2048, "print_final_stats": 1, "artifact_prefix": f"{FOUND}/{name}-",
    }  # fmt: skip
    arguments = [f"-{option}={value}" for option, value in options.items()]
    atheris.Setup([name, *arguments, str(corpus)], target.run)
    atheris.Fuzz()


if __name__ == "__main__":
    main(*sys.argv[1:])
