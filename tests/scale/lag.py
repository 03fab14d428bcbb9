"""A steady sender with a ledger, and readers that note when each page is seen in the files of each
host.
"""

from __future__ import annotations

import http.client
import json
import re
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

HOST = "sitemaps.example.com"
ACCEPTED = {200, 202}
AGAIN_S = 0.25
"""Seconds until a sender that was not answered 202 comes again."""
WAIT_S = 4.0
_SHARD = re.compile(rb"<loc>[^<]*/(pages-[0-9]+[.]xml)</loc>")
_PAGE = re.compile(rb"<loc>[^<]*/p/([0-9]+)</loc>")


class Seen(NamedTuple):
    """Seconds from the first POST of an event until its page is seen at one host."""

    p50: float
    p99: float
    most: float


class Figures(NamedTuple):
    """What a phase was like for senders and readers. Seconds from the first POST of an event to
    its answer 202; `repeated`: POSTs that had to be sent again; `seen` by host.
    """

    events: int
    repeated: int
    answered_p50: float
    answered_p99: float
    seen: dict[str, Seen]


class Traffic:
    """Tells of a new page every `pace` seconds through any of the `fronts`, until it is stopped."""

    def __init__(self, fronts: Sequence[str], token: str, pace: float) -> None:
        self._fronts, self._token, self._pace = fronts, token, pace
        self._stopping = threading.Event()
        self._readers_stop = threading.Event()
        self.sent: dict[int, float] = {}
        self.acknowledged: dict[int, float] = {}
        self.seen: dict[str, dict[int, float]] = {front: {} for front in fronts}
        self.again: dict[int, int] = {}
        self._pool = ThreadPoolExecutor(24)
        self._threads = [threading.Thread(target=self._send, daemon=True)]
        self._threads += [
            threading.Thread(target=self._read, args=[front], daemon=True) for front in fronts
        ]

    def start(self) -> None:
        """Begin to send and to read."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Send nothing new; wait until all that was begun is acknowledged."""
        self._stopping.set()
        self._threads[0].join()
        self._pool.shutdown()

    def end(self) -> None:
        """Read no more."""
        self._readers_stop.set()
        for reader in self._threads[1:]:
            reader.join()

    def _send(self) -> None:
        number, due = 0, time.monotonic()
        while not self._stopping.wait(max(0.0, due - time.monotonic())):
            number, due = number + 1, due + self._pace
            self.sent[number] = time.monotonic()
            self._pool.submit(self._deliver, number)

    def _deliver(self, number: int) -> None:
        tries = 0
        while (
            self._post(self._fronts[(number + tries) % len(self._fronts)], number) not in ACCEPTED
        ):
            tries += 1
            time.sleep(AGAIN_S)
        self.again[number] = tries
        self.acknowledged[number] = time.monotonic()

    def _post(self, front: str, number: int) -> int:
        connection = http.client.HTTPConnection(front, timeout=WAIT_S)
        body = json.dumps({"type": "upsert", "loc": f"https://www.example.com/p/{number}"})
        headers = {"Host": HOST, "Authorization": f"Bearer {self._token}",
                   "Content-Type": "application/json"}  # fmt: skip
        try:
            connection.request("POST", "/v1/sites/main/events", body, headers)
            return connection.getresponse().status
        except (OSError, http.client.HTTPException):
            return 0
        finally:
            connection.close()

    def _read(self, front: str) -> None:
        seen = self.seen[front]
        while not self._readers_stop.wait(0.05):
            found = self.listed(front)
            now = time.monotonic()
            for number in (found or set()) - seen.keys():
                seen[number] = now

    def listed(self, front: str) -> set[int] | None:
        """The pages that are listed by the files of the index; None if some cannot be read."""
        connection = http.client.HTTPConnection(front, timeout=1)
        found: set[int] = set()
        try:
            for name in _SHARD.findall(_get(connection, "sitemap.xml")):
                found |= set(map(int, _PAGE.findall(_get(connection, name.decode()))))
        except (OSError, http.client.HTTPException):
            return None
        finally:
            connection.close()
        return found

    def seen_until(self, moment: float) -> bool:
        """Whether each page that was first sent before `moment` has been seen at each host."""
        sent = {number for number, at in [*self.sent.items()] if at < moment}
        return all(sent <= seen.keys() for seen in self.seen.values())

    def everything_seen(self) -> bool:
        """Whether each acknowledged page has been seen at each host."""
        return all(self.acknowledged.keys() <= seen.keys() for seen in self.seen.values())

    def lost(self) -> dict[str, set[int]]:
        """Pages that were acknowledged and are in no file of a host, by host."""
        return {
            front: self.acknowledged.keys() - (self.listed(front) or set())
            for front in self._fronts
        }

    def figures(self, begun: float, ended: float) -> Figures:
        """Of the events that were first sent between two moments."""
        numbers = [n for n, at in self.sent.items() if begun <= at < ended]
        answered = sorted(self.acknowledged[n] - self.sent[n] for n in numbers)
        repeated = sum(self.again[n] for n in numbers)
        return Figures(
            len(numbers), repeated, _quantile(answered, 0.5), _quantile(answered, 0.99),
            {front: self._seen(seen, numbers) for front, seen in self.seen.items()},
        )  # fmt: skip

    def _seen(self, seen: Mapping[int, float], numbers: Sequence[int]) -> Seen:
        found = sorted(seen[n] - self.sent[n] for n in numbers if n in seen)
        return Seen(_quantile(found, 0.5), _quantile(found, 0.99), max(found, default=0.0))


def _get(connection: http.client.HTTPConnection, name: str) -> bytes:
    connection.request("GET", f"/{name}", headers={"Host": HOST})
    reply = connection.getresponse()
    content = reply.read()
    return content if reply.status == 200 else b""


def _quantile(values: Sequence[float], share: float) -> float:
    return values[min(len(values) - 1, int(len(values) * share))] if values else 0.0
