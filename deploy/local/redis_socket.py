"""Address of the embedded Redis-compatible server of a home."""

from __future__ import annotations

import os
import tempfile
from hashlib import blake2b
from pathlib import Path

DATA = "redis"
"""Directory of its data within the home."""

_SOCKET_BYTES = 103  # sun_path holds 107 on Linux, 103 on macOS, without the final NUL


def socket_path(home: Path) -> Path:
    """Return the path of its socket: in its data directory, or a private one if the path is too
    long.
    """
    home = home.absolute()
    path = home / DATA / "redis.sock"
    if len(os.fsencode(path)) <= _SOCKET_BYTES:
        return path
    digest = blake2b(os.fsencode(home), digest_size=8).hexdigest()
    return Path(tempfile.gettempdir()) / f"sitemapd-{os.getuid()}-{digest}" / "redis.sock"


def socket_url(home: Path) -> str:
    """Return its address, for `redis_url`."""
    return f"unix://{socket_path(home)}"
