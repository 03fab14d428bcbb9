"""nginx with the configuration that is shipped, as the user who runs the tests, on loopback."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
from pathlib import Path

import pytest

from tests.system.driver import wait_until

SHIPPED = Path(__file__).resolve().parents[2] / "deploy" / "nginx"
PROGRAM = shutil.which("nginx") or "/usr/sbin/nginx"  # Debian keeps it off the users' PATH
HOST = "127.0.0.1"

# What the distribution's nginx.conf says around an included file, made small.
MAIN = """\
daemon off;
{user}
pid {directory}/nginx.pid;
error_log {directory}/error.log warn;
worker_processes 1;
events {{ worker_connections 768; }}
http {{
    access_log {directory}/access.log;
    client_body_temp_path {directory}/body;
    proxy_temp_path {directory}/proxy;
    fastcgi_temp_path {directory}/fastcgi;
    uwsgi_temp_path {directory}/uwsgi;
    scgi_temp_path {directory}/scgi;
    include {directory}/sitemapd.conf;
}}
"""


def needs(program: str) -> None:
    """Skip what cannot run without `program`; never where everything is to run (CI_ALL)."""
    if shutil.which(program) is None and not os.environ.get("CI_ALL"):
        pytest.skip(f"{program} is not installed here: apt-get install it to run this test")


def rendered(text: str, values: dict[str, str]) -> str:
    """`text` with the marked lines, and only these, holding `values`; every mark must have one."""

    def line(match: re.Match[str]) -> str:
        return f"{match['indent']}{values[match['name']]}"

    return re.sub(r"(?m)^(?P<indent> *)[^#\n]*;  # <- (?P<name>.+)$", line, text)


class Nginx:
    """The shipped configuration for files in `web_root` and a webhook at `upstream`."""

    def __init__(self, directory: Path, web_root: Path, upstream: str) -> None:
        """`upstream`: HOST:PORT, or unix:PATH."""
        self.directory = directory
        self.web_root = web_root
        self.upstream = upstream
        self.port = 0
        self._beside: str | None = None
        self._whole: str | None = None

    def whole(self, written: Path) -> None:
        """Use what `sitemapd deploy-files` has written for sites-available and its snippets."""
        self._whole = (written / "nginx/sites-available/sitemapd").read_text(encoding="utf-8")
        self.directory.mkdir(parents=True, exist_ok=True)
        (self.directory / "snippets").symlink_to(written / "nginx/snippets")

    def beside(self, lines: str) -> None:
        """Have another web site, of files in `web_root`, include these lines in its server block
        instead of the shipped one.
        """
        self._beside = lines

    @property
    def address(self) -> str:
        """Where it answers."""
        return f"http://{HOST}:{self.port}"

    def start(self) -> None:
        """Start it and wait until it takes connections; the port stays the same."""
        self.directory.mkdir(parents=True, exist_ok=True)
        if not self.port:
            with socket.socket() as probe:
                probe.bind((HOST, 0))
                self.port = probe.getsockname()[1]
        self.write()
        with (self.directory / "output.log").open("ab") as output:
            self.process = subprocess.Popen(
                [*self._command(), "-e", self.directory / "error.log"], stdout=output, stderr=output
            )
        wait_until(self._answers, "nginx takes connections")

    def write(self) -> None:
        """Write the configuration that `start` would use."""
        listen = f"listen {HOST}:{self.port}"
        snippet = f"include {self.directory}/sitemapd-files.conf;"
        values = {
            "upstream": f"server {self.upstream};",
            "listen": f"{listen};", "listen default": f"{listen} default_server;",
            "listen6": "", "listen6 default": "",  # a machine may have no IPv6
            "host": f"server_name {HOST};",
            "web root": f"root {self.web_root};",
            "lookup": "proxy_pass http://sitemapd/v1/sites/demo/listed;",
            "snippet": snippet,
        }  # fmt: skip
        for name in ("sitemapd.conf", "sitemapd-files.conf"):
            text = rendered((SHIPPED / name).read_text(encoding="utf-8"), values)
            (self.directory / name).write_text(text, encoding="utf-8")
        if self._beside is not None:
            lines = self._beside.replace("snippets/", f"{self.directory}/")
            (self.directory / "sitemapd.conf").write_text(
                f"server {{ {listen}; root {self.web_root};\n{lines}\n}}\n"
            )
        if self._whole is not None:
            kept = re.sub(r"(?m)^ *listen \[::\].*\n", "", self._whole)  # there may be no IPv6
            text = re.sub(r"listen (80|443)\b", listen, kept)
            (self.directory / "sitemapd.conf").write_text(text, encoding="utf-8")
        # root's nginx would serve as nobody, who may not look into root's temporary directories
        user = "user root root;" if os.geteuid() == 0 else ""
        main = MAIN.format(directory=self.directory, user=user)
        (self.directory / "nginx.conf").write_text(main, encoding="utf-8")

    def check(self) -> subprocess.CompletedProcess[str]:
        """What `nginx -t` says."""
        command = [*self._command(), "-t", "-e", "stderr"]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)

    def stop(self) -> None:
        """End it, without waiting for its connections."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(30)

    def _command(self) -> list[str | Path]:
        return [PROGRAM, "-p", self.directory, "-c", self.directory / "nginx.conf"]

    def _answers(self) -> bool:
        if self.process.poll() is not None:
            log = self.directory / "error.log"
            pytest.fail("nginx ended: " + (log.read_text() if log.exists() else ""))
        with socket.socket() as probe:
            return probe.connect_ex((HOST, self.port)) == 0
