"""Pack the WordPress plugin into a zip that WordPress installs; the same bytes every time."""  # noqa: INP001  a script

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

SOURCE = Path(__file__).resolve().parent / "sitemapd"
KINDS = {".php", ".js", ".txt"}
EPOCH = (1980, 1, 1, 0, 0, 0)
"""The earliest time a zip can hold: a fixed date keeps the bytes the same."""


def build(target: Path) -> None:
    """Write the zip with the plugin's own files only."""
    files = sorted(path for path in SOURCE.rglob("*") if path.suffix in KINDS)
    with zipfile.ZipFile(target, "w") as packed:
        for path in files:  # stored: the output of deflate differs between zlib versions
            info = zipfile.ZipInfo(path.relative_to(SOURCE.parent).as_posix(), EPOCH)
            info.create_system = 3  # Unix, on every build system
            info.external_attr = 0o100644 << 16
            packed.writestr(info, path.read_bytes())


if __name__ == "__main__":
    build(Path(sys.argv[1]))
