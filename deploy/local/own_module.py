"""Processes that run one of our modules: `python -P own_module.py worker.main ...`.

The script finds the application by its own place: neither the working directory, nor PYTHONPATH,
nor a package of the same name in site-packages can put another `worker` before ours.
"""

from __future__ import annotations

import runpy
import sys
from pathlib import Path


def own_module(module: str, *arguments: str | Path) -> list[str | Path]:
    """Return the command that runs `module` of this application with this Python."""
    return [sys.executable, "-P", __file__, module, *arguments]


def _run() -> None:
    sys.path.insert(0, str(Path(__file__).parents[2]))
    del sys.argv[0]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    _run()
