"""compose.yaml with compose.ha.yaml on hosts of their own, two of them with a web root: the
commands of the services and of the README, without an engine.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import threading
import tomllib
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

import yaml

from tests.faults.deployment import SITEMAPD
from tests.faults.parts import POLL_S, Part, until
from tests.faults.tools.store import engine
from tests.scale.namespaces import Network
from tests.system.nginx import MAIN, PROGRAM

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
OWN = "172.31.77.1"
WEBS = ("web", "web-2")
WORKERS = ("worker", "worker-2", "worker-3")
FRONTS = ("front", "front-2")
STORES = ("redis", "redis-2", "redis-3")
SENTINELS = ("sentinel-1", "sentinel-2", "sentinel-3")
ADDRESSES = {
    **{name: f"172.31.77.{n}" for n, name in enumerate(STORES, 11)},
    **{name: f"172.31.77.{n}" for n, name in enumerate(SENTINELS, 21)},
    **{name: f"172.31.77.{n}" for n, name in enumerate(WEBS, 31)},
    **{name: f"172.31.77.{n}" for n, name in enumerate(FRONTS, 51)},
    "schedule": "172.31.77.61",
}
PLACES = dict(zip(WORKERS, (FRONTS[0], FRONTS[1], FRONTS[1]), strict=True))
"""The hosts of the workers: those with a web root, which their nginx serves."""

TARGET = """
[[sites.main.targets]]
url = "{root}"
host = "{host}"
"""
_NOT_HERE = re.compile(r"(?m)^(?:docker compose|chown|chmod).*\n")


class Hosts:
    """All services, each on its host, restarted at once when they die."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.roots = {name: home / "roots" / name for name in FRONTS}
        self.network = Network(ADDRESSES, OWN)
        self.secrets = self._made_as_documented()
        text = (self.secrets / "sitemapd.toml").read_text()
        text = text.replace('web_root = "/var/lib/sitemapd/public"\n', "publish_interval = 0.2\n")
        for host, root in self.roots.items():
            root.mkdir(parents=True)
            text += TARGET.format(root=root, host=host)
        (home / "sitemapd.toml").write_text(text)
        self.token: str = tomllib.loads(text)["sites"]["main"]["tokens"][0]
        compose = [yaml.safe_load((DEPLOY / f"compose{x}.yaml").read_text()) for x in ("", ".ha")]
        self._services: Mapping[str, dict[str, object]] = {
            **compose[0]["services"], **compose[1]["services"]
        }  # fmt: skip
        self._programs()
        self.parts = {name: self._part(name) for name in (*ADDRESSES, *WORKERS)}
        self._stopping = threading.Event()
        self._keeper = threading.Thread(target=self._keep, daemon=True)

    def _made_as_documented(self) -> Path:
        """Run the commands of deploy/README.md that make deploy/secrets."""
        work = self.home / "work"
        for name in ("redis", "nginx"):
            shutil.copytree(DEPLOY / name, work / "deploy" / name)
        readme = (DEPLOY / "README.md").read_text().partition("\n## Containers\n")[2]
        blocks = re.findall(r"```sh\n(.*?)```", readme, re.DOTALL)[:2]
        script = _NOT_HERE.sub("", "".join(blocks))
        subprocess.run(["sh", "-eu", "-c", script], cwd=work, check=True)
        return work / "deploy" / "secrets"

    def _programs(self) -> None:
        programs = self.home / "bin"
        programs.mkdir()
        (programs / "valkey-server").symlink_to(engine())
        (programs / "valkey-sentinel").write_text(f'#!/bin/sh\nexec {engine()} "$@" --sentinel\n')
        (programs / "valkey-sentinel").chmod(0o755)

    def _part(self, name: str) -> Part:
        env = {**os.environ, "PATH": f"{self.home}/bin:{os.environ['PATH']}"}
        folder = self.home / "hosts" / name
        folder.mkdir(parents=True)
        command = Network.on(PLACES.get(name, name), *self._command(name, folder))
        return Part(name, command, env, folder / "log")

    def _command(self, name: str, folder: Path) -> list[str]:
        if name in FRONTS:
            return [PROGRAM, "-e", f"{folder}/error.log", "-c", str(self._front(name, folder))]
        if name in STORES + SENTINELS:
            shell = [str(word) for word in self._services[name]["command"]]  # type: ignore[attr-defined]
            return [*shell[:-1], self._placed(shell[-1].replace("$$", "$"), folder)]
        kind = "web" if name in WEBS else "schedule" if name == "schedule" else "worker"
        more = {"web": ["--listen", "0.0.0.0:8080", "--behind-proxy", "--processes", "2"],
                "worker": ["--name", name, "--host", PLACES.get(name, "")],
                "schedule": []}  # fmt: skip
        return [str(SITEMAPD), "run", kind, *more[kind], "--home", str(self.home)]

    def _placed(self, text: str, folder: Path) -> str:
        """A script with the paths of this machine, and settings of Redis made for them."""
        conf = (self.secrets / "redis.conf").read_text().replace("dir /data", f"dir {folder}")
        conf = conf.replace("/etc/redis/sitemapd.acl", str(self.secrets / "sitemapd.acl"))
        (folder / "given.conf").write_text(conf)
        places = {
            "/etc/redis/redis-sitemapd.conf": str(folder / "given.conf"),
            "/run/secrets/replication": str(self.secrets / "replication.conf"),
            "/run/secrets/sentinel": str(self.secrets / "sentinel.conf"),
            "/data": str(folder),
        }
        for old, new in places.items():
            text = text.replace(old, new)
        return text

    def _front(self, name: str, folder: Path) -> Path:
        text = (self.secrets / "nginx.conf").read_text()
        text = text.replace("/var/lib/sitemapd/public", str(self.roots[name]))
        (folder / "sitemapd.conf").write_text(text)
        (folder / "snippets").mkdir()
        shutil.copy(DEPLOY / "nginx" / "sitemapd-files.conf", folder / "snippets")
        main = folder / "nginx.conf"
        main.write_text(MAIN.format(directory=folder, user="user root;"))
        return main

    def __enter__(self) -> Self:
        self._keeper.start()
        for name in (*STORES, *SENTINELS):
            self.parts[name].wanted = True
        until(lambda: self.master() == "redis", "the sentinels know the master", 60)
        until(lambda: self.followers() == 2, "both replicas follow", 60)
        for part in self.parts.values():
            part.wanted = True
        until(self.answers, "events are taken", 120)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        self._stopping.set()
        self._keeper.join()
        for part in self.parts.values():
            part.end(signal.SIGKILL)

    def _keep(self) -> None:
        while not self._stopping.wait(POLL_S):
            for part in self.parts.values():
                part.tend()

    def files(self, host: str) -> dict[str, bytes]:
        """The files that a host serves."""
        found = [each for each in self.roots[host].iterdir() if each.name[0] != "."]
        return {each.name: each.read_bytes() for each in found}

    def verifies(self, host: str) -> str:
        """What `sitemapd verify` says of the files of a host; empty if they are the state's."""
        command = [str(SITEMAPD), "verify", "--home", str(self.home)]
        done = subprocess.run(
            Network.on(host, *command), env={**os.environ, "SITEMAPD_HOST": host},
            capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip
        return done.stdout + done.stderr if done.returncode else ""

    def ask(self, host: str, port: int, *command: str) -> str:
        """What a Redis or a sentinel says, asked on its own host."""
        user = [] if port != 6379 else ["--user", "sitemapd", "-a", self._password()]
        asked = Network.on(host, "redis-cli", "--no-auth-warning", "-p", str(port), *user, *command)
        done = subprocess.run(asked, capture_output=True, text=True, check=False, timeout=20)
        return done.stdout

    def _password(self) -> str:
        url = tomllib.loads((self.home / "sitemapd.toml").read_text())["redis_url"]
        return str(url.partition("//sitemapd:")[2].partition("@")[0])

    def master(self) -> str:
        """The host that most sentinels name as master; empty if they do not agree."""
        said = [self.ask(name, 26379, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", "sitemapd") for name
                in SENTINELS]  # fmt: skip
        named = [text.split("\n")[0] for text in said]
        most = max(named, key=named.count)
        known = {address: name for name, address in ADDRESSES.items()}
        return known.get(most, "") if named.count(most) > 1 else ""

    def followers(self) -> int:
        """How many replicas the master has."""
        return self.ask(self.master(), 6379, "INFO", "replication").count("state=online")

    def answers(self, name: str = "web") -> bool:
        """Whether a webhook takes events."""
        url = f"http://{ADDRESSES[name]}:8080/readyz?accepting"
        asked = ["curl", "--silent", "--max-time", "2", "--output", "/dev/null", "--fail", url]
        return subprocess.run(asked, check=False).returncode == 0
