"""Sites come, change and go under load: nobody is restarted, and no acknowledged event is lost."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import threading
import time
import tomllib
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPException
from pathlib import Path
from typing import Any

import psutil

from tests.system.driver import NAMESPACE, SITEMAPD, System, wait_until

PARTS = ("redis", "worker", "web")


def processes(system: System) -> dict[int, float]:
    """Every process of this `up` by id, with the time of its start."""
    found = psutil.Process(system.process.pid).children(recursive=True)
    return {each.pid: each.create_time() for each in found}


class Load:
    """A sender that never stops; what was acknowledged, and any other answer."""

    def __init__(self, system: System) -> None:
        self.system, self.acknowledged, self.others = system, list[str](), list[str]()
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self.run)

    def run(self) -> None:
        number = 0
        while not self.stopping.is_set():
            number += 1
            loc = f"{self.system.base}/load-{number}"
            try:
                status, said = self.system.post(json.dumps({"type": "upsert", "loc": loc}).encode())
            except (OSError, HTTPException) as error:
                self.others.append(repr(error))
                continue
            if status == 202:
                self.acknowledged.append(loc)
            else:
                self.others.append(f"{status} {said}")


@contextmanager
def load(system: System) -> Iterator[Load]:
    found = Load(system)
    found.thread.start()
    try:
        yield found
    finally:
        found.stopping.set()
        found.thread.join()


def run(system: System, *arguments: str) -> dict[str, Any]:
    done = system.run(*arguments, "--json")
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def send(system: System, site: str, number: int) -> int:
    """Send one page of `site` with its token; the status of the answer."""
    config = tomllib.loads((system.home / "sitemapd.toml").read_text())["sites"]
    token = config[site]["tokens"][0] if site in config else Known.tokens[site]
    Known.tokens[site] = token
    loc = f"https://{site}.example.com/{number}"
    return post(system, site, token, {"type": "upsert", "loc": loc})


class Known:
    """Tokens of sites that were removed since."""

    tokens: dict[str, str] = {}


def post(system: System, site: str, token: str, event: dict[str, Any]) -> int:
    from http.client import HTTPConnection
    from urllib.parse import urlsplit

    connection = HTTPConnection(urlsplit(system.address).netloc, timeout=10)
    try:
        headers = {"content-type": "application/json", "authorization": f"Bearer {token}"}
        connection.request("POST", f"/v1/sites/{site}/events", json.dumps(event), headers)
        return connection.getresponse().status
    finally:
        connection.close()


def pages(root: Path) -> set[str]:
    found = set()
    for file in root.glob("*-*.xml"):
        with suppress(FileNotFoundError):
            found |= {each.findtext(f"{NAMESPACE}loc") or "" for each in ET.parse(file).getroot()}
    return found


def test_sites_come_change_and_go_under_load(system: System) -> None:
    before = processes(system)
    pids = {name: system.pid(name) for name in PARTS}
    with load(system) as sender:
        wait_until(lambda: len(sender.acknowledged) > 20, "the load runs")
        added = run(system, "site", "add", "shop", "https://shop.example.com")
        assert len(added["in_force"]) == 2, added
        assert added["not_yet"] == []
        assert [send(system, "shop", number) for number in range(3)] == [202] * 3
        root = system.home / "public-shop"
        wait_until(lambda: len(pages(root)) == 3, "the new site is published")

        run(system, "section", "add", "shop", "blog", "--split", "month")
        run(system, "section", "add", "demo", "late")
        config = system.home / "sitemapd.toml"
        changed = config.read_text().replace("# publish_interval = 1.0", "publish_interval = 0.5")
        config.write_text(changed)  # in place, as some editors do
        wait_until(lambda: in_force(system) > 1, "the edit by hand is in force")

        assert [send(system, "shop", number) for number in range(3, 40)] == [202] * 37
        gone = run(system, "site", "remove", "shop", "--yes")
        assert gone["not_yet"] == []
        assert send(system, "shop", 99) == 401, "it is answered like a site that never was"
        wait_until(lambda: len(pages(root)) == 40, "what was accepted is published")
        assert processes(system) == before, "no process was restarted, or started"
        assert {name: system.pid(name) for name in PARTS} == pids
        said = len(sender.acknowledged)
        wait_until(lambda: len(sender.acknowledged) > said + 20, "the load goes on")

    assert sender.others == []
    system.quiet()
    assert set(sender.acknowledged) == set(system.published())


def in_force(system: System) -> int:
    """How many processes have read the last configuration, by the log lines."""
    lines = [
        json.loads(line)
        for name in ("web", "worker")
        for line in (system.home / "logs" / f"{name}.log").read_text().splitlines()
        if "configuration in force" in line
    ]
    last = max((line["timestamp"] for line in lines), default="")
    newest = next((line["revision"] for line in lines if line["timestamp"] == last), "")
    return sum(1 for line in lines if line["revision"] == newest)


def test_an_invalid_file_is_shown_everywhere_and_changes_nothing(system: System) -> None:
    config = system.home / "sitemapd.toml"
    valid = config.read_text()
    config.write_text(valid + "unknown_field = 1\n")

    def shown() -> str:
        return system.run("status").stderr

    wait_until(lambda: "stays in force in web" in shown(), "status says what is in force")
    assert "unknown_field" in shown()
    wait_until(lambda: refused(system) == {"web", "worker"}, "both log it")
    system.send({"type": "upsert", "loc": f"{system.base}/a"})
    wait_until(lambda: list(system.published()) == [f"{system.base}/a"], "all goes on")
    banner = console(system)
    assert "The configuration file is refused" in banner
    assert "unknown_field" in banner

    config.write_text(valid)
    wait_until(lambda: "file is refused" not in console(system), "the banner goes")
    assert system.run("status").returncode == 0


def refused(system: System) -> set[str]:
    return {
        name for name in ("web", "worker")
        if "configuration refused" in (system.home / "logs" / f"{name}.log").read_text()
    }  # fmt: skip


def console(system: System) -> str:
    """The overview, as an operator sees it."""
    from http.client import HTTPConnection
    from urllib.parse import urlencode, urlsplit

    host = urlsplit(system.address).netloc
    token = tomllib.loads((system.home / "sitemapd.toml").read_text().split("unknown_field")[0])
    form = {"user": "admin", "token": token["console"]["users"]["admin"]["token"]}
    if not hasattr(system, "cookie"):
        connection = HTTPConnection(host, timeout=10)
        headers = {
            "content-type": "application/x-www-form-urlencoded", "origin": system.address,
            "sec-fetch-site": "same-origin",
        }  # fmt: skip
        connection.request("POST", "/admin/login", urlencode(form), headers)
        answer = connection.getresponse()
        assert answer.status == 303, answer.read()
        system.cookie = answer.headers["set-cookie"].split(";")[0]  # type: ignore[attr-defined]
        connection.close()
    status, _, body = system.get("/admin/", cookie=system.cookie)  # type: ignore[attr-defined]
    assert status == 200
    return body.decode()


def test_a_hangup_reads_the_configuration_and_restarts_nobody(system: System) -> None:
    before, config = processes(system), system.home / "sitemapd.toml"
    found = config.stat()
    # Of the same size and time, as an archive may restore it: only asking helps.
    config.write_text(config.read_text().replace('robots = "create"', 'robots = "edit"  '))
    os.utime(config, ns=(found.st_atime_ns, found.st_mtime_ns))
    time_of_file = config.stat().st_mtime_ns
    assert (time_of_file, config.stat().st_size) == (found.st_mtime_ns, found.st_size)

    system.process.send_signal(signal.SIGHUP)

    wait_until(lambda: in_force(system) > 1, "both have read it")
    assert system.process.poll() is None
    assert processes(system) == before


def test_a_removed_site_takes_its_files_along_if_that_is_said(system: System) -> None:
    run(system, "site", "add", "shop", "https://shop.example.com")
    root = system.home / "public-shop"
    assert send(system, "shop", 1) == 202
    (root / "robots.txt").parent.mkdir(exist_ok=True)
    (root / "robots.txt").write_text("User-agent: *\n")
    (root / "index.html").write_text("mine")
    gone = run(system, "site", "remove", "shop", "--yes", "--delete-files")

    assert {"sitemap.xml", "pages-1.xml", ".sitemapd"} <= set(gone["files_deleted"])
    assert {path.name for path in root.iterdir()} == {"robots.txt", "index.html"}


def test_a_command_asks_before_it_removes_a_site(system: System) -> None:
    run(system, "site", "add", "shop", "https://shop.example.com")
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [SITEMAPD, "site", "remove", "shop", "--home", system.home],
        stdin=slave, stdout=slave, stderr=slave, env=system.environment,
    )  # fmt: skip
    os.close(slave)
    said = ""
    until = time.monotonic() + 60
    while "[y/N]" not in said and time.monotonic() < until:
        said += os.read(master, 4096).decode()
    os.write(master, b"n\n")
    assert process.wait(60) == 1
    os.close(master)

    assert re.search(r"Remove the site shop .*keeps its files", said, re.DOTALL)
    sites = json.loads(system.run("site", "list", "--json").stdout)
    assert [site["site"] for site in sites] == ["demo", "shop"]
