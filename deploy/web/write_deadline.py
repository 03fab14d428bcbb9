"""Deadline of the kernel for writes: a client that reads nothing loses its connection."""

from __future__ import annotations

import os
import socket
from contextlib import closing, suppress

_OPEN_FILES = "/dev/fd"


def limit_writes(port: int, seconds: float) -> None:
    """Close present and future connections to our `port` whose client accepts nothing for
    `seconds`; only where the kernel can (Linux).

    The server does not expose its sockets, so the open descriptors are searched. A connection
    inherits the option of its listener.
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
