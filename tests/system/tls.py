"""A certificate authority of one test, and a Redis that lets in only whom it has certified."""

from __future__ import annotations

import socket
import subprocess
from pathlib import Path
from urllib.parse import urlencode

import pytest

from tests.system.parts import servers

_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2")


def _openssl(*words: str | Path) -> None:
    done = subprocess.run(["openssl", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


class Authority:
    """A certificate authority in `directory`, with certificates for a server and a client."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        directory.mkdir(parents=True)
        self.own = directory / "ca.pem"
        _openssl(
            "req", "-x509", *_KEY, "-subj", "/CN=an authority", "-keyout", directory / "ca.key",
            "-out", self.own,
        )  # fmt: skip
        for name in ("server", "client"):
            self._certify(name)

    def _certify(self, name: str) -> None:
        extensions = self.directory / "names"
        extensions.write_text("subjectAltName = IP:127.0.0.1, DNS:localhost\n")
        _openssl(
            "req", *_KEY, "-subj", f"/CN={name}", "-keyout", self.directory / f"{name}.key",
            "-out", self.directory / f"{name}.csr",
        )  # fmt: skip
        _openssl(
            "x509", "-req", "-in", self.directory / f"{name}.csr", "-CA", self.own,
            "-CAkey", self.directory / "ca.key", "-CAcreateserial", "-days", "2",
            "-extfile", extensions, "-out", self.directory / f"{name}.pem",
        )  # fmt: skip

    def settings(self) -> dict[str, str]:
        """The settings of a Redis whose port for TLS lets in certified clients only."""
        return {
            "tls-cert-file": str(self.directory / "server.pem"),
            "tls-key-file": str(self.directory / "server.key"),
            "tls-ca-cert-file": str(self.own),
            "tls-auth-clients": "yes", "tls-replication": "yes", "tls-cluster": "yes",
        }  # fmt: skip

    def options(self, trusted: Path | None = None, *, certificate: bool = True) -> str:
        """What an address ends with: the trusted authority, and the client's certificate."""
        own = {"ssl_ca_certs": trusted or self.own}
        if certificate:
            own |= {
                "ssl_certfile": self.directory / "client.pem",
                "ssl_keyfile": self.directory / "client.key",
            }
        return "?" + urlencode({name: str(path) for name, path in own.items()}, safe="/")


def with_tls() -> list[Path]:
    """The servers of this machine that are built with TLS; a test of none is skipped."""
    found = []
    for program in servers():
        asked = [program, "--port", "0", "--tls-port", "1"]  # and no certificate: it ends at once
        done = subprocess.run(asked, capture_output=True, text=True, check=False, timeout=30)
        if "Failed to configure TLS" in done.stdout + done.stderr:
            found.append(program)
    if not found:
        pytest.skip("no server of this machine is built with TLS: apt-get install redis-server")
    return found


def free_port() -> int:
    """A port of loopback that nobody listens at."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
