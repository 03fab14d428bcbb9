"""Break everything, count what is lost: `python -m tests.faults [--short] [--seed N] [CASE...]`.

The long form does 1,000 kills and every fault of RELIABILITY 3; it needs root, for mounts and
network namespaces. The short form does 50 kills. Exit code 1 on any loss.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from tests.faults import kills, plain_celery, report
from tests.faults.cases import CASES
from tests.faults.deployment import Options
from tests.faults.planted import MISTAKES, checkout
from tests.faults.run import Case, Row, perform
from tests.faults.tools import needs

KILLS = "SIGKILL of any process"
PLANTED = "planted: "
SHORT_KILLS, LONG_KILLS, PLANTED_KILLS, BESIDE_KILLS = 50, 1_000, 5, 80
PLANTED_ROUNDS = 8
"""So many times PLANTED_KILLS, each with a seed of its own, before a mistake counts as not found:
which kill shows it is chance, and depends on how fast the machine is.
"""


def planted(kills_: int, mistake: str) -> Case:
    """Kills of the kind that brings `mistake` out, in a copy of the checkout that has it."""

    def prepare(directory: Path, _stack: ExitStack) -> Options:
        copy = checkout(directory / "planted", MISTAKES[mistake])
        return Options(env={"PYTHONPATH": str(copy)})

    return Case(
        "-", PLANTED + mistake,
        partial(kills.kill_in_order, kinds=[MISTAKES[mistake].kill] * kills_), prepare, within=40,
        quiet_s=10,
    )  # fmt: skip


def found(case: Case, row: Row) -> bool:
    """Whether the planted mistake of `case` was seen, and not only something else."""
    shows = MISTAKES[case.name.removeprefix(PLANTED)].shows
    return any(re.search(shows, what) for what in row.wrong)


def chosen(options: argparse.Namespace) -> list[Case]:
    """The cases that were asked for."""
    if options.planted:
        return [planted(options.kills or PLANTED_KILLS, name) for name in options.planted]
    count = options.kills or (SHORT_KILLS if options.short else LONG_KILLS)
    first = Case("F1-F5", KILLS, partial(kills.kill_all_kinds, kills=count))
    every = [first] if options.short else [first, *CASES]
    if not options.cases:
        return every
    wanted = {name.lower() for name in options.cases}
    every = [first, *CASES]
    return [case for case in every if wanted & {case.fault.lower(), case.name.lower()}]


def beside(seed: int) -> tuple[Row, str]:
    """Our row and the lines of a table: the same kills for us and for plain Celery."""
    case = Case(
        "-", f"{BESIDE_KILLS} SIGKILLs of a worker", partial(kills.kill_workers, kills=BESIDE_KILLS)
    )
    ours = perform(case, seed)
    with tempfile.TemporaryDirectory() as name:
        plain = plain_celery.kill(BESIDE_KILLS, seed, Path(name))
    return ours, (
        "\n| SIGKILLs of a worker | Events acknowledged | Lost |\n|---|--:|--:|\n"
        f"| {plain.times}, plain Celery, a task per event | {plain.sent:,} | {plain.lost:,} |\n"
        f"| {ours.injected}, sitemapd | {ours.acked:,} | {ours.lost:,} |"
    )


def main() -> int:
    """Run, print each row as it comes, say what was wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("--short", action="store_true", help="50 kills and nothing else")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kills", type=int, help="another number of kills")
    parser.add_argument("--json", type=Path, help="write the figures there as well")
    parser.add_argument("--planted", action="append", choices=MISTAKES, help="must fail")
    parser.add_argument("cases", nargs="*", help="ids (F7) or names; default: all")
    options = parser.parse_args()
    if not (options.short or options.planted):
        lacking = needs.missing() + ([] if os.geteuid() == 0 else ["run it as root"])
        if lacking:
            parser.exit(2, "before the long form: " + "; ".join(lacking) + "\n")
    rows = []
    print(report.HEAD, flush=True)
    for case in chosen(options):
        for seed in range(options.seed, options.seed + (PLANTED_ROUNDS if options.planted else 1)):
            rows.append(perform(case, seed))
            print(report.line(rows[-1]), flush=True)
            for what in rows[-1].wrong:
                print(f"  wrong: {what}", file=sys.stderr, flush=True)
            if options.planted and found(case, rows[-1]):
                break
    print(report.total(rows), flush=True)
    if not (options.short or options.cases or options.planted):
        row, table = beside(options.seed)
        rows.append(row)
        print(table, flush=True)
    if options.json:
        report.save(options.json, options.seed, rows)
    return int(not rows or any(map(report.failed, rows)))


if __name__ == "__main__":
    sys.exit(main())
