"""CMSes from npm and PyPI, in a cache directory that outlives the tests."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

CACHE = Path(os.environ.get("SITEMAPD_CMS_CACHE") or Path.home() / ".cache" / "sitemapd-cms")
NODE = "22.23.3"
_WHOLE = ".whole"
_MACHINES = {"x86_64": "x64", "aarch64": "arm64"}


def installed(name: str, pins: object, make: Callable[[Path], None]) -> Path:
    """The directory `name` of the cache, made anew by `make` where `pins` or Python changed."""
    place = CACHE / name
    said = json.dumps([pins, sys.version_info[:2]], sort_keys=True, default=str)
    wanted = hashlib.sha256(said.encode()).hexdigest()
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        marker = place / _WHOLE
        if not marker.exists() or marker.read_text() != wanted:
            shutil.rmtree(place, ignore_errors=True)
            place.mkdir()
            make(place)
            marker.write_text(wanted)
    return place


def run(*command: str | Path, cwd: Path, env: Mapping[str, str] | None = None) -> None:
    """Run one step of an installation; what cannot be installed is skipped, with the reason."""
    done = subprocess.run(
        command, cwd=cwd, env={**os.environ, **(env or {})}, check=False, timeout=1_800,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    if done.returncode:
        said = [line for line in done.stdout.splitlines() if line.strip()]
        pytest.skip(f"cannot be installed: {' '.join(map(str, command))}: " + " | ".join(said[-8:]))


class Node:
    """A Node.js of at least version `least`: Debian's, or else the one npm carries."""

    def __init__(self, least: tuple[int, int]) -> None:
        if shutil.which("npm") is None:
            pytest.skip("npm is missing: apt-get install nodejs npm")
        self.program = Path(shutil.which("node") or "")
        self.headers: Path | None = self.program.resolve().parents[1]
        if self._version() < least:
            folder = installed("node", NODE, self._from_npm) / "node_modules" / _package()
            self.program, self.headers = folder / "bin" / "node", folder
        # What is compiled here wants headers; without them node-gyp would look on the network.
        if not (self.headers / "include" / "node" / "node_api.h").exists():
            self.headers = None

    def _version(self) -> tuple[int, int]:
        said = subprocess.run(
            [self.program, "--version"], capture_output=True, text=True, check=True
        ).stdout
        major, minor, *_ = said.strip().removeprefix("v").split(".")
        return int(major), int(minor)

    def _from_npm(self, place: Path) -> None:
        (place / "package.json").write_text('{"private": true}')
        run("npm", "install", "--no-audit", "--no-fund", f"{_package()}@{NODE}", cwd=place)

    def environment(self) -> dict[str, str]:
        """What its programs and npm run with."""
        found = {
            "PATH": f"{self.program.parent}{os.pathsep}{os.environ['PATH']}",
            "npm_config_update_notifier": "false",
        }
        if self.headers is not None:
            found["npm_config_nodedir"] = str(self.headers)
        return found

    def project(self, name: str, package: Path) -> Path:
        """The directory `name` of the cache, in which is installed what `package` names."""

        def make(place: Path) -> None:
            shutil.copy(package, place)
            self.install(place)

        return installed(name, package.read_text(), make)

    def install(self, place: Path, *options: str) -> None:
        """Install what the package.json in `place` names."""
        npm = ("npm", "install", "--omit=dev", "--no-audit", "--no-fund")
        run(*npm, *options, cwd=place, env=self.environment())


def _package() -> str:
    machine = _MACHINES.get(platform.machine())
    if sys.platform != "linux" or machine is None:
        pytest.skip(f"npm carries no Node.js {NODE} for this machine: install one")
    return f"node-linux-{machine}"
