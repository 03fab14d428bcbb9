"""Back-ups in a directory: named by their time, the newest kept."""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import Path

from shared.errors import BackupError

_NAME = re.compile(r"sitemapd-\d{8}T\d{6}Z\.backup")


def name_at(now: datetime) -> str:
    """Return the file name of a back-up made at `now`, in UTC: names sort by time."""
    return f"sitemapd-{now:%Y%m%dT%H%M%SZ}.backup"


def found_in(directory: Path) -> list[Path]:
    """Return the back-ups in `directory`, the oldest first; files of other names are none."""
    return sorted(path for path in directory.iterdir() if _NAME.fullmatch(path.name))


def newest(path: Path) -> Path:
    """Return `path`, or the newest back-up in it if it is a directory. Raises BackupError."""
    if not path.is_dir():
        return path
    if not (found := found_in(path)):
        raise BackupError(f"{path} holds no back-up named as sitemapd-20260131T235959Z.backup")
    return found[-1]


def prune(directory: Path, keep: int) -> list[Path]:
    """Remove all back-ups in `directory` but the newest `keep`; return the removed ones."""
    old = found_in(directory)[:-keep]
    for path in old:
        path.unlink()
    return old
