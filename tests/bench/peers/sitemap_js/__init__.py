"""sitemap.js, the package `sitemap` of npm: its stream of all pages into files and an index."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

from tests.bench.corpus import BASE
from tests.bench.peers.cost import PER_FILE, Cost, Page, checked
from tests.system.cms.installing import Node

HERE = Path(__file__).parent
OLDEST = (20, 20)
_PACKAGE = HERE / "package.json"
VERSION = json.loads(_PACKAGE.read_text())["dependencies"]["sitemap"]


def rebuilt(pages: list[Page], root: Path) -> Cost:
    """Write all files of `pages` anew below `root`; the cost.

    The package is installed where tests/system/cms installs. Skips where that cannot be.
    """
    node = Node(OLDEST)
    project = node.project("sitemap-js", _PACKAGE)
    source, target = root / "pages.tsv", root / "sitemap-js"
    source.write_text("".join(f"{loc}\t{lastmod}\n" for loc, lastmod in pages))
    target.mkdir()
    done = subprocess.run(
        [
            node.program, "--max-old-space-size=8192", HERE / "rebuild.mjs",
            project, source, target, BASE, str(PER_FILE),
        ],
        env=os.environ | node.environment(), stdout=subprocess.PIPE, check=True, text=True,
    )  # fmt: skip
    source.unlink()
    cost = json.loads(done.stdout)
    return Cost(cost["seconds"], cost["cpu"], checked(target, len(pages)))
