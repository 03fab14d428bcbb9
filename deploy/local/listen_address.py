"""Addresses to listen on: parsed, refused where others can reach them, and as a URL."""

from __future__ import annotations

import ipaddress
import socket

from shared.errors import ConfigError, Fault, ServerStartError


def parse_listen(text: str, *, behind_proxy: bool) -> tuple[str, int]:
    """Return host and port of HOST:PORT. Raises ConfigError if other machines can reach it and no
    proxy is in front.
    """
    host, _, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not host or not port.isascii() or not port.isdigit() or int(port) > 65_535:
        raise ConfigError(Fault("http", "config", f"{text!r} is no HOST:PORT"))
    try:
        loopback = ipaddress.ip_address(host).is_loopback
    except ValueError:
        loopback = host == "localhost"
    if not loopback and not behind_proxy:
        detail = (
            f"{host} can be reached by others, without TLS and from any number of connections: "
            "listen on 127.0.0.1, or put nginx in front and say --behind-proxy"
        )
        raise ConfigError(Fault("http", "RELIABILITY T12", detail))
    return host, int(port)


def free_port(host: str, port: int) -> int:
    """Return `port`, or for 0 a free one. Raises ServerStartError if a process listens there
    already.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise ServerStartError(f"cannot listen on {host}:{port}: {error.strerror}") from error
        return int(probe.getsockname()[1])


def reachable(host: str) -> str:
    """Return `host`, or the loopback address if `host` means every address."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host
    if not address.is_unspecified:
        return host
    return "127.0.0.1" if address.version == 4 else "::1"


def address_of(host: str, port: int) -> str:
    host = reachable(host)
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
