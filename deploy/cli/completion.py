"""Values that a shell completes: names of sites, without loading the settings."""

from __future__ import annotations

import tomllib
from typing import Any

import typer

from deploy.cli.homes import find_home
from shared.config.locations import FILE


def sites(context: typer.Context, incomplete: str) -> list[str]:
    """Return the configured sites whose names begin with `incomplete`; none without a readable
    configuration.

    The file is read as it is: validating it takes ten times as long as a key press may.
    """
    try:
        text = (find_home(context.params.get("home")) / FILE).read_text(encoding="utf-8")
        found: Any = tomllib.loads(text).get("sites", {})
    except (OSError, ValueError):  # of TOML and of UTF-8
        return []
    return [name for name in found if name.startswith(incomplete)]
