"""The kernel's deadline for writes: who reads nothing loses the connection."""

from __future__ import annotations

import os
import socket
from contextlib import closing, suppress

_OPEN_FILES = "/dev/fd"


def limit_writes(port: int, seconds: float) -> None:
    """Close connections to our `port` whose client takes nothing for `seconds`, those to come
    included; where the kernel can (Linux).

    The server shows its sockets to nobody. A connection inherits what its listener was told.
    """
    option = getattr(socket, "TCP_USER_TIMEOUT", None)
    if option is None:
        return
    for name in os.listdir(_OPEN_FILES):
        with suppress(OSError), closing(socket.socket(fileno=os.dup(int(name)))) as found:
            if found.family in {socket.AF_INET, socket.AF_INET6} and _port(found) == port:
                found.setsockopt(socket.IPPROTO_TCP, option, int(seconds * 1000))


def _port(found: socket.socket) -> int:
    return int(found.getsockname()[1])
