"""RELIABILITY N1, F1, F2, F4, F5: whatever is killed, no acknowledged event is lost."""

from __future__ import annotations

import calendar
import http.client
import json
import os
import random
import threading
import time
import xml.etree.ElementTree as ET
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.system.driver import NAMESPACE, System, wait_until

PAGES = 400
KILLS = 4
SENDERS = 2


class Ledger:
    """What was sent about each page: the newest acknowledged, and newer ones nobody answered."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.acked: dict[str, int] = {}
        self.unknown: dict[str, set[int]] = {}
        self.counts = {"acked": 0, "refused": 0, "unknown": 0}

    def note(self, loc: str, version: int, outcome: str) -> None:
        with self.lock:
            self.counts[outcome] += 1
            if outcome == "acked":
                self.acked[loc] = max(version, self.acked.get(loc, 0))
            elif outcome == "unknown":
                self.unknown.setdefault(loc, set()).add(version)

    def wrong(self, published: dict[str, str | None]) -> list[str]:
        """Pages whose published version is neither the newest acknowledged nor an unknown newer."""
        found = []
        for loc, newest in self.acked.items():
            lastmod = published.get(loc)
            shown = None if lastmod is None else version_of(lastmod)
            newer = {version for version in self.unknown.get(loc, ()) if version > newest}
            if shown != newest and shown not in newer:
                found.append(f"{loc}: acknowledged {newest}, published {shown}")
        return found


# The version is told by the lastmod: so many seconds after this.
EPOCH = 1_700_000_000


def lastmod_of(version: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(EPOCH + version))


def version_of(lastmod: str) -> int:
    return calendar.timegm(time.strptime(lastmod, "%Y-%m-%dT%H:%M:%SZ")) - EPOCH


def keep_sending(system: System, ledger: Ledger, stop: threading.Event, first: int) -> None:
    chance, version = random.Random(first), first
    while not stop.is_set():
        version += SENDERS
        loc = f"{system.base}/{chance.randrange(PAGES)}"
        event = {"type": "upsert", "loc": loc, "version": version, "lastmod": lastmod_of(version)}
        try:
            status, _ = system.post(json.dumps(event).encode())
        except (OSError, http.client.HTTPException, ValueError):
            ledger.note(loc, version, "unknown")
            continue
        # An error from Redis does not mean "not written" (RELIABILITY 0, finding 4).
        ledger.note(loc, version, "acked" if status in (200, 202) else "unknown")


def keep_reading(root: Path, stop: threading.Event, faults: list[str]) -> None:
    """A reader that never may see a torn file, nor an index that names a missing one."""
    while not stop.is_set():
        try:
            index = ET.fromstring((root / "sitemap.xml").read_bytes())
            for loc in index.iter(f"{NAMESPACE}loc"):
                name = Path(urlsplit(loc.text or "").path).name
                ET.fromstring((root / name).read_bytes())
        except (OSError, ET.ParseError) as error:
            faults.append(repr(error))


@pytest.mark.timeout(300)
def test_nothing_acknowledged_is_lost_whoever_is_killed(system: System) -> None:
    ledger, stop, faults = Ledger(), threading.Event(), list[str]()
    system.send({"type": "upsert", "loc": f"{system.base}/first"})
    wait_until(system.published, "the first page is published")
    threads = [
        threading.Thread(target=keep_sending, args=(system, ledger, stop, n), daemon=True)
        for n in range(SENDERS)
    ]
    threads.append(threading.Thread(target=keep_reading, args=(system.root, stop, faults)))
    chance = random.Random(2)
    victims = [name for name in ("worker", "web", "redis", "schedule") for _ in range(KILLS)]
    chance.shuffle(victims)
    for thread in threads:
        thread.start()
    try:
        for name in victims:
            goal = ledger.counts["acked"] + chance.randrange(20, 60)
            wait_until(lambda goal=goal: ledger.counts["acked"] >= goal, "events are accepted", 60)
            system.kill(name)
    finally:
        stop.set()
        for thread in threads:
            thread.join()

    wait_until(lambda: not ledger.wrong(system.published()), "the files say what was accepted", 30)

    print(f"{len(victims)} kills: {ledger.counts}, lost 0, torn {len(faults)}")
    assert faults == []
    assert ledger.counts["acked"] > len(victims) * 20
    wait_until(lambda: system.run("verify").returncode == 0, "verify says equal")
    assert [name for name in os.listdir(system.root) if name.startswith(".sitemapd-")] == []
