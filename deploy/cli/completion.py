"""Values that a shell completes: names of sites, without loading the settings."""

from __future__ import annotations

import re
import tomllib
from typing import Any

import typer

from deploy.cli.homes import find_home
from shared.config.locations import DIRECTORY, FILE

_HEADER = re.compile(r"^\[sites\.([a-z0-9-]+)\]", re.MULTILINE)


def sites(context: typer.Context, incomplete: str) -> list[str]:
    """Return the configured sites whose names begin with `incomplete`; none without a readable
    configuration.

    The file is read as it is: validating it takes ten times as long as a key press may.
    """
    try:
        home = find_home(context.params.get("home"))
        found: Any = tomllib.loads((home / FILE).read_text(encoding="utf-8")).get("sites", {})
        for path in sorted((home / DIRECTORY).glob("*.toml")):
            found |= dict.fromkeys(_HEADER.findall(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):  # of TOML and of UTF-8
        return []
    return [name for name in found if name.startswith(incomplete)]
