"""Directories of installations: the one that a command is about."""

from __future__ import annotations

import os
from pathlib import Path

from shared.config.locations import FILE

DEFAULT_HOME = Path("sitemapd-data")
HOMES = (Path(), DEFAULT_HOME, Path("demo"))
"""Directories where a configuration is looked for if none is named; `make up` makes the last."""


def find_home(home: Path | None) -> Path:
    """Return the directory from --home or SITEMAPD_HOME, else the first of HOMES with a
    configuration.
    """
    if home is not None:
        return home
    if "SITEMAPD_HOME" in os.environ:
        return Path(os.environ["SITEMAPD_HOME"])
    return next((each for each in HOMES if (each / FILE).exists()), DEFAULT_HOME)
