"""Hosts that are network namespaces on one bridge. The process that makes them is in namespaces of
its own (`isolated`): nothing of them is left on the machine when it ends.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

INSIDE = "SITEMAPD_TEST_NAMESPACE"
BRIDGE = "hosts"


def isolated(module: str, *arguments: str) -> None:
    """Become `python -m module` in namespaces of its own; needs root."""
    if os.environ.get(INSIDE):
        return
    os.environ[INSIDE] = "1"
    command = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
    os.execvp(command[0], [*command, sys.executable, "-m", module, *arguments])


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True)


class Network:
    """Hosts by name and address, each able to reach the others until it is cut off."""

    def __init__(self, addresses: Mapping[str, str], own: str) -> None:
        """`own`: the address of this process."""
        self._addresses = addresses
        for place in ("/run/netns", "/etc/netns"):
            Path(place).mkdir(exist_ok=True)
            subprocess.run(["mount", "-t", "tmpfs", "tmpfs", place], check=True)
        _ip("link", "set", "lo", "up")
        _ip("link", "add", BRIDGE, "type", "bridge")
        _ip("address", "add", f"{own}/24", "dev", BRIDGE)
        _ip("link", "set", BRIDGE, "up")
        for number, (name, address) in enumerate(addresses.items()):
            self._add(name, address, f"port{number}")

    def _add(self, name: str, address: str, port: str) -> None:
        _ip("netns", "add", name)
        _ip("link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", name)
        _ip("link", "set", port, "alias", name, "master", BRIDGE, "up")
        for words in (["address", "add", f"{address}/24", "dev", "eth0"],
                      ["link", "set", "eth0", "up"], ["link", "set", "lo", "up"]):  # fmt: skip
            _ip("-n", name, *words)
        folder = Path("/etc/netns", name)
        folder.mkdir()
        names = {"localhost": "127.0.0.1", **self._addresses, socket.gethostname(): address}
        (folder / "hosts").write_text("".join(f"{a} {n}\n" for n, a in names.items()))

    @staticmethod
    def on(host: str, *command: str) -> list[str]:
        """The command line that runs `command` on a host."""
        return ["ip", "netns", "exec", host, *command]

    def cut(self, host: str) -> None:
        """Pull the cable of a host."""
        self._link(host, "down")

    def heal(self, host: str) -> None:
        """Put the cable back."""
        self._link(host, "up")

    def _link(self, host: str, state: str) -> None:
        _ip("link", "set", f"port{list(self._addresses).index(host)}", state)
