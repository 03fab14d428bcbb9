"""Hosts on a network that can be cut, lossy or slow, on this machine (RELIABILITY F19).

Each host is a network namespace with one interface on a common bridge; this machine is on the
bridge, too, as `network.address`. Hosts share everything but the network. Delays are the proxy's:
not every kernel has netem.
"""

from __future__ import annotations

import contextlib
import secrets
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from tests.faults.tools import needs
from tests.faults.tools.disk import run
from tests.faults.tools.needs import ToolError

_NETWORK = "198.18"  # RFC 2544: for tests of networks, routed nowhere


class Host:
    """One host, by its IPv4 `address`."""

    def __init__(self, name: str, namespace: str, address: str) -> None:
        self.name, self.namespace, self.address = name, namespace, address

    def popen(
        self, argv: Sequence[str | Path], env: Mapping[str, str] | None = None, **options: Any
    ) -> subprocess.Popen[Any]:
        """Start a program on this host; options as subprocess.Popen's."""
        command = [needs.program("nsenter"), f"--net=/run/netns/{self.namespace}", *argv]
        return subprocess.Popen(command, env=env, **options)

    def run(self, name: str, *arguments: str) -> str:
        """Run a program of the system on this host; ToolError if it fails."""
        return run("nsenter", f"--net=/run/netns/{self.namespace}", needs.program(name), *arguments)


class Network:
    """A bridge and its hosts; a context manager that takes all of it away.

    Programs on its hosts are their starters' to end. The methods raise ToolError if refused.
    """

    def __init__(self) -> None:
        needs.root("make network namespaces")
        for name in ("ip", "nft", "tc", "nsenter"):
            needs.program(name)
        self._tag = secrets.token_hex(3)
        self._bridge = f"flt{self._tag}"
        self._net = f"{_NETWORK}.{secrets.randbelow(254) + 1}"
        self.address = f"{self._net}.1"
        self._hosts: dict[str, Host] = {}
        self._losses: dict[tuple[str, str], int] = {}
        self._rates: dict[tuple[str, str], str] = {}

    def __enter__(self) -> Self:
        run("ip", "link", "add", self._bridge, "type", "bridge")
        run("ip", "addr", "add", f"{self.address}/24", "dev", self._bridge)
        run("ip", "link", "set", self._bridge, "up")
        return self

    def __exit__(self, *_: object) -> None:
        for number, host in enumerate(self._hosts.values(), 2):
            # a program that is still there keeps its namespace, and thereby the interface
            with contextlib.suppress(ToolError):
                run("ip", "link", "delete", f"flt{self._tag}v{number}")
            with contextlib.suppress(ToolError):
                run("ip", "netns", "delete", host.namespace)
        with contextlib.suppress(ToolError):
            run("ip", "link", "delete", self._bridge)

    def host(self, name: str) -> Host:
        """The host of that name, a new one the first time."""
        if name in self._hosts:
            return self._hosts[name]
        number = len(self._hosts) + 2
        host = Host(name, f"flt{self._tag}-{number}", f"{self._net}.{number}")
        outer = f"flt{self._tag}v{number}"
        run("ip", "netns", "add", host.namespace)
        self._hosts[name] = host
        run("ip", "link", "add", outer, "type", "veth", "peer", "eth0", "netns", host.namespace)
        run("ip", "link", "set", outer, "master", self._bridge, "up")
        host.run("ip", "addr", "add", f"{host.address}/24", "dev", "eth0")
        host.run("ip", "link", "set", "eth0", "up")
        host.run("ip", "link", "set", "lo", "up")
        return host

    def cut(self, a: str, b: str) -> None:
        """Nothing passes between the two any more, and neither is told."""
        self.lose(a, b, 100)

    def lose(self, a: str, b: str, percent: int) -> None:
        """That share of the packets between the two is lost, each way."""
        self._losses[a, b] = self._losses[b, a] = percent
        self._filter(a)
        self._filter(b)

    def slow(self, a: str, b: str, rate: str) -> None:
        """Between the two no more passes than `rate`, each way, in tc's spelling: "64kbit"."""
        self._rates[a, b] = self._rates[b, a] = rate
        self._shape(a)
        self._shape(b)

    def heal(self, a: str, b: str) -> None:
        """All is well between the two."""
        for way in ((a, b), (b, a)):
            self._losses.pop(way, None)
            self._rates.pop(way, None)
        for name in (a, b):
            self._filter(name)
            self._shape(name)

    def _filter(self, name: str) -> None:
        rules = [
            # nft refuses a comparison that always holds
            f"ip saddr {self._hosts[other].address} "
            + (f"numgen random mod 100 < {percent} drop" if percent < 100 else "drop")
            for (here, other), percent in self._losses.items()
            if here == name
        ]
        head = "type filter hook input priority 0; policy accept;"
        table = "table inet faults"
        text = f"{table}\ndelete {table}\n{table} {{ chain arriving {{ {head}\n"
        text += "\n".join(rules) + "\n}\n}\n"
        process = self._hosts[name].popen(
            [needs.program("nft"), "-f", "-"],
            stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        said = process.communicate(text)[1]
        if process.returncode:
            raise ToolError(f"nft: {said.strip()}")

    def _shape(self, name: str) -> None:
        host = self._hosts[name]
        rates = [(other, rate) for (here, other), rate in self._rates.items() if here == name]
        with contextlib.suppress(ToolError):  # there was none
            host.run("tc", "qdisc", "delete", "dev", "eth0", "root")
        if not rates:
            return
        # htb, because it lets unclassified packets pass at once; a plain tbf would slow all peers
        host.run("tc", "qdisc", "add", "dev", "eth0", "root", "handle", "1:", "htb")
        for number, (other, rate) in enumerate(rates, 2):
            shape = ("classid", f"1:{number}", "htb", "rate", rate, "burst", "2kb", "cburst", "2kb")
            host.run("tc", "class", "add", "dev", "eth0", "parent", "1:", *shape)
            match = ("u32", "match", "ip", "dst", f"{self._hosts[other].address}/32")
            host.run(
                "tc", "filter", "add", "dev", "eth0", "parent", "1:", "protocol", "ip",
                *match, "flowid", f"1:{number}",
            )  # fmt: skip
