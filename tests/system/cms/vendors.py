"""Packages that vendors publish on npm, in the cache of the CMSes: read and run in place."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.system.cms.installing import Node, installed

LEAST = (22, 12)
"""What groq-js and the packages of Shopify ask for."""
_READ = "import { readFileSync } from 'node:fs'; const given = JSON.parse(readFileSync(0, 'utf8'));"


class Packages:
    """Packages of pinned versions in one directory, and the Node.js that runs scripts with them."""

    def __init__(self, name: str, pins: Mapping[str, str]) -> None:
        self.node = Node(LEAST)
        self.pins = pins
        self.place = installed(name, pins, self._install)

    def _install(self, place: Path) -> None:
        package = {"private": True, "type": "module", "dependencies": dict(self.pins)}
        (place / "package.json").write_text(json.dumps(package))
        self.node.install(place, "--ignore-scripts")

    def text(self, package: str, path: str) -> str:
        """The text of one file of a package."""
        return (self.place / "node_modules" / package / path).read_text()

    def said(self, script: str, given: object = None) -> Any:
        """The value that `script`, an ES module, gives to `say`; its input is `given`."""
        said = "const say = (value) => process.stdout.write(JSON.stringify(value) + '\\n');"
        done = subprocess.run(
            [self.node.program, "--no-warnings", "--input-type=module", "--eval",
             f"{_READ}{said}\n{script}"],
            cwd=self.place, input=json.dumps(given), capture_output=True, text=True, timeout=60,
            check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.splitlines()[-1])
