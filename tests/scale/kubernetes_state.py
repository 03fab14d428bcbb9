"""Redis and sentinels of the Kubernetes overlay `ha`: its scripts and settings, each pod on a host
of its own, found by name. `python -m tests.scale.kubernetes_state`, as root.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.faults.parts import Part, until
from tests.faults.tools.store import engine
from tests.scale.namespaces import Network, isolated

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
HA = DEPLOY / "kubernetes" / "ha"
STORES = ("redis-0", "redis-1", "redis-2")
SENTINELS = ("sentinel-0", "sentinel-1", "sentinel-2")
ADDRESSES = {name: f"172.31.79.{n}" for n, name in enumerate((*STORES, *SENTINELS), 11)}
FIRST, SECOND = "a" * 64, "b" * 64


class Pods:
    """The six pods, each with a volume of its own."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self._network = Network(ADDRESSES, "172.31.79.1")
        (home / "bin").mkdir()
        (home / "bin/valkey-server").symlink_to(engine())
        (home / "bin/valkey-cli").symlink_to(str(shutil.which("redis-cli")))
        sentinel = home / "bin/valkey-sentinel"
        sentinel.write_text(f'#!/bin/sh\nexec {engine()} "$@" --sentinel\n')
        sentinel.chmod(0o755)
        self._users()
        self.parts = {name: self._part(name) for name in ADDRESSES}

    def _users(self) -> None:
        """The Secret, as the README makes it."""
        (self.home / "users").mkdir()
        text = "".join((DEPLOY / "redis" / f"{name}.acl").read_text() for name in
                       ("sitemapd", "replication"))  # fmt: skip
        for place, password in (("@SHA256-OF-THE-PASSWORD@", FIRST),
                                ("@SHA256-OF-THE-SECOND-PASSWORD@", SECOND)):  # fmt: skip
            text = text.replace(place, hashlib.sha256(password.encode()).hexdigest())
        (self.home / "users/sitemapd.acl").write_text(text)
        (self.home / "users/replication.conf").write_text(
            f"masteruser replica\nmasterauth {SECOND}\n"
        )
        (self.home / "users/sentinel.conf").write_text(
            f"sentinel auth-user sitemapd sentinel\nsentinel auth-pass sitemapd {SECOND}\n"
        )

    def volume(self, name: str) -> Path:
        """Where a pod keeps its files."""
        return self.home / "volumes" / name

    def _part(self, name: str) -> Part:
        folder = self.home / "pods" / name
        (folder / "settings").mkdir(parents=True)
        for each in ("redis.conf", "redis.sh", "sentinel.sh"):
            text = (HA / each).read_text().replace("/etc/sitemapd/", f"{folder}/settings/")
            text = text.replace("/etc/redis/", f"{self.home}/users/")
            text = text.replace("/data", str(self.volume(name)))
            (folder / "settings" / each).write_text(text)
        env = {**os.environ, "POD": name, "PATH": f"{self.home}/bin:{os.environ['PATH']}"}
        script = f"{folder}/settings/{name.partition('-')[0]}.sh"
        return Part(name, Network.on(name, "sh", script), env, folder / "log")

    def start(self, *names: str) -> None:
        """Start pods, on new volumes if they have none."""
        for name in names:
            self.volume(name).mkdir(parents=True, exist_ok=True)
            self.parts[name].wanted = True
            self.parts[name].tend()

    def kill(self, *names: str) -> None:
        """SIGKILL pods; they stay down."""
        for name in names:
            self.parts[name].end(9)

    def ask(self, host: str, *command: str) -> str:
        """What a Redis or a sentinel says, asked on its own host."""
        redis = ["-p", "6379", "--user", "sitemapd", "-a", FIRST]
        where = redis if host in STORES else ["-p", "26379"]
        asked = Network.on(host, "redis-cli", "--no-auth-warning", *where, *command)
        return subprocess.run(
            asked, capture_output=True, text=True, check=False, timeout=20
        ).stdout.strip()

    def master(self) -> str:
        """The Redis that most sentinels name; empty if they do not agree."""
        said = [self.ask(name, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", "sitemapd").split("\n")[0]
                for name in SENTINELS]  # fmt: skip
        most = max(said, key=said.count)
        return most if said.count(most) > 1 else ""

    def whole(self) -> bool:
        """Whether one is master, two follow it, and all sentinels know each other and both: a
        sentinel asks a master for its replicas every 10 s, and can name none that it does not know.
        """
        links = [self.ask(name, "INFO", "replication") for name in STORES]
        quorum = [self.ask(name, "SENTINEL", "CKQUORUM", "sitemapd") for name in SENTINELS]
        masters = [name for name, said in zip(STORES, links, strict=True) if "role:master" in said]
        return (
            masters == [self.master()]
            and sum("master_link_status:up" in said for said in links) == 2
            and all(said.startswith("OK 3") for said in quorum)
            and all(self._replicas_known(name) == "2" for name in SENTINELS)
        )

    def _replicas_known(self, sentinel: str) -> str:
        said = iter(self.ask(sentinel, "SENTINEL", "MASTER", "sitemapd").split("\n"))
        return next((next(said) for name in said if name == "num-slaves"), "")

    def moves(self, do: str, *names: str) -> None:
        """Wait until another is master, and print how long that took."""
        former = self.master()
        self.kill(*names)
        if do == "loses its volume":
            for name in names:
                shutil.rmtree(self.volume(name))
            self.start(*names)
        took = until(lambda: self.master() not in {"", former}, "another master is named", 60)
        print(f"{former} {do}: another master after {took:.1f} s", flush=True)


def main() -> None:
    """Start, break, print; exit with 1 unless all is there at the end."""
    isolated("tests.scale.kubernetes_state")
    with tempfile.TemporaryDirectory(prefix="sitemapd-pods-") as home:
        pods = Pods(Path(home))
        try:
            found = live(pods)
        finally:
            pods.kill(*ADDRESSES)
    print(f"{found} of 3 writes on every Redis")
    sys.exit(0 if found == 3 else 1)


def live(pods: Pods) -> int:
    """The life of the pods; return how many of its three writes each Redis has at the end."""
    written = 0

    def write() -> None:
        nonlocal written
        written += 1
        pods.ask(pods.master(), "SET", f"{{x}}{written}", "1")

    pods.start(*ADDRESSES)
    until(pods.whole, "all is whole", 60)
    write()
    former = pods.master()
    pods.moves("is killed", former)
    pods.start(former)
    until(pods.whole, "the former master follows", 60)
    write()
    pods.moves("loses its volume", pods.master())
    until(pods.whole, "it follows, with all data", 60)
    pods.kill(SENTINELS[1])
    shutil.rmtree(pods.volume(SENTINELS[1]))
    pods.start(SENTINELS[1])
    until(lambda: pods.ask(SENTINELS[1], "SENTINEL", "CKQUORUM", "sitemapd").startswith("OK"),
          "a new sentinel knows another", 60)  # fmt: skip
    pods.kill(*ADDRESSES)
    pods.start(*ADDRESSES)
    until(pods.master, "a master is named", 60)
    until(lambda: all(link(pods, name) for name in STORES), "all follow it", 60)
    write()
    until(lambda: {pods.ask(name, "DBSIZE") for name in STORES} == {"3"}, "each has all", 30)
    return min(int(pods.ask(name, "DBSIZE")) for name in STORES)


def link(pods: Pods, name: str) -> bool:
    """Whether a Redis is master, or has what its master has: the readiness of its pod."""
    said = pods.ask(name, "INFO", "replication")
    return "role:master" in said or "master_link_status:up" in said


if __name__ == "__main__":
    main()
