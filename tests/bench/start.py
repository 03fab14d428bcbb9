"""CPU time of a command from its start to its end, beside a bare start of Python."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from deploy.local.embedded_redis import EmbeddedServer
from tests.bench.corpus import BASE
from tests.bench.report import Report, compared
from tests.bench.scale import Scale
from tests.bench.service import ROOT

COMMANDS = {
    "--version": 12.0, "--help": 12.0, "secret": 12.0, "completion zsh": 12.0,
    "config check": None, "site list": None, "event example": None, "status": None,
}  # fmt: skip
"""Commands with the upper bound of their CPU time, in starts of Python. None: typer, pydantic and
the models of the configuration take more than such a bound, and redis-py comes on top of them.
"""

_CONFIG = f"""
[sites.demo]
base_url = "{BASE}"
web_root = "public"
tokens = ["0123456789abcdef"]
"""
_PYTHON = [sys.executable, "-c", "pass"]
_SITEMAPD = [sys.executable, "-c", "from deploy.cli.entry import main; main()"]


def start(report: Report, scale: Scale) -> None:
    """Measure each of COMMANDS, next to `python -c pass`.

    CPU time, since a start waits for nothing: it depends less on what else the machine does.
    """
    with TemporaryDirectory() as folder:
        home = Path(folder)
        (home / "sitemapd.toml").write_text(_CONFIG, encoding="utf-8")
        with EmbeddedServer(home):
            for name, most in COMMANDS.items():
                command = [*_SITEMAPD, *name.split()]
                rounds = scale.warm + scale.rounds // 4  # CPU time varies little
                pairs = [(_cpu_ms(command, home), _cpu_ms(_PYTHON, home)) for _ in range(rounds)]
                report.add(
                    compared(
                        f"CPU time of `sitemapd {name}`", "ms", pairs[scale.warm :],
                        "python -c pass", at_most=most,
                    )
                )  # fmt: skip


def _cpu_ms(command: Sequence[str], home: Path) -> float:
    """CPU time of `command`, a process with its output discarded, in ms."""
    environment = {
        name: text for name, text in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"
    }
    environment |= {"PYTHONPATH": str(ROOT), "SITEMAPD_HOME": str(home)}
    output = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
    pid = os.posix_spawn(command[0], command, environment, file_actions=output)
    _, status, used = os.wait4(pid, 0)
    assert status == 0, f"{command} ended with {status}"
    return (used.ru_utime + used.ru_stime) * 1e3
