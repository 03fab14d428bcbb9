"""Pack the WordPress plugin into a zip that WordPress installs; the same bytes every time."""

from __future__ import annotations

import io
import sys
import zipfile
from pathlib import Path

SOURCE = Path(__file__).resolve().parent / "sitemapd"
KINDS = {".php", ".js", ".txt"}
EPOCH = (1980, 1, 1, 0, 0, 0)
"""The earliest time a zip can hold: a fixed date keeps the bytes the same."""


def packed() -> bytes:
    """Return the zip with the plugin's own files only."""
    files = sorted(path for path in SOURCE.rglob("*") if path.suffix in KINDS)
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for path in files:  # stored: the output of deflate differs between zlib versions
            info = zipfile.ZipInfo(path.relative_to(SOURCE.parent).as_posix(), EPOCH)
            info.create_system = 3  # Unix, on every build system
            info.external_attr = 0o100644 << 16
            archive.writestr(info, path.read_bytes())
    return made.getvalue()


if __name__ == "__main__":
    Path(sys.argv[1]).write_bytes(packed())
