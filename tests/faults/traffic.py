"""Senders: what is told, doubled, late and in batches, as real systems send it."""

from __future__ import annotations

import base64
import hmac
import http.client
import json
import random
import threading
import time
from collections import deque
from typing import NamedTuple

from tests.faults.contents import Contents, event_of
from tests.faults.deployment import Deployment
from tests.faults.ledger import Ledger, Sent

SENDERS = 2
NOTHING_STORED = {"inbox-full", "rate-limited"}


class Delivery(NamedTuple):
    """One request, as it may be sent again."""

    ident: str
    body: bytes
    events: list[Sent]


def delivery(events: list[Sent], section: str, ident: str) -> Delivery:
    """The request that tells `events`, in the native form."""
    told = [event_of(sent, section) for sent in events]
    return Delivery(ident, json.dumps(told).encode(), events)


class Sender(threading.Thread):
    """Sends about its own share of the pages until it is stopped."""

    def __init__(
        self, system: Deployment, ledger: Ledger, seed: int, pace: float,
        names: list[str], *, fresh: bool = False,
    ) -> None:  # fmt: skip
        """`pace`: seconds between two requests; `names`: ids of deliveries that all senders share.

        `fresh`: each request on a connection of its own.
        """
        super().__init__(daemon=True)
        self.longest = 0.0
        """Seconds that the slowest answer took."""
        self._system, self._ledger, self._pace, self._fresh = system, ledger, pace, fresh
        self._chance = random.Random(seed)
        self.contents = Contents(
            self._chance,
            ledger.next_version,
            names,
            timed=system.options.timed,
        )
        self._stopping = threading.Event()
        self._again: deque[Delivery] = deque(maxlen=100)
        self._late: deque[Delivery] = deque()
        self._connection: http.client.HTTPConnection | None = None

    def stop(self) -> None:
        """Send no more; what was held back is still sent."""
        self._stopping.set()

    def run(self) -> None:
        while not self._stopping.wait(self._pace):
            self.send(self._next())
        for held in self._late:
            self.send(held)
        self._forget()

    def _next(self) -> Delivery:
        chance = self._chance
        if self._again and chance.random() < 0.1:
            return chance.choice(self._again)
        if len(self._late) > 5:
            return self._late.popleft()
        section, events = self.contents.request()
        fresh = delivery(events, section, self.contents.ident())
        if chance.random() < 0.05:
            self._late.append(fresh)
            return self._next()
        return fresh

    def send(self, message: Delivery) -> int:
        """Send one delivery and enter what became of it: the status, 0 without an answer."""
        begun = time.monotonic()
        try:
            status, code = self._post(message)
        except ConnectionRefusedError:
            self._forget()
            self._ledger.note(message.events, "refused")  # nobody was there to take it
            self._stopping.wait(0.05)
            return 0
        except (OSError, http.client.HTTPException, ValueError):
            self._forget()
            self._ledger.note(message.events, "unknown")
            self._again.append(message)
            return 0
        finally:
            self.longest = max(self.longest, time.monotonic() - begun)
        self._ledger.note(message.events, _outcome(status, code), status, code)
        self._again.append(message)
        return status

    def _post(self, message: Delivery) -> tuple[int, str]:
        now = str(int(time.time() + self._system.skew))
        signed = f"{message.ident}.{now}.".encode() + message.body
        mac = base64.b64encode(hmac.digest(self._system.key, signed, "sha256")).decode()
        if self._connection is None:
            self._connection = http.client.HTTPConnection(
                self._system.options.address, self._system.port, timeout=10
            )
        self._connection.request(
            "POST", "/v1/sites/demo/events", message.body,
            {
                "content-type": "application/json", "webhook-id": message.ident,
                "webhook-timestamp": now, "webhook-signature": f"v1,{mac}",
            },
        )  # fmt: skip
        reply = self._connection.getresponse()
        answer = reply.status, str(json.loads(reply.read()).get("code", ""))
        if self._fresh:
            self._forget()
        return answer

    def _forget(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _outcome(status: int, code: str) -> str:
    if status in (200, 202):
        return "acked"
    if status < 500 or code in NOTHING_STORED:
        return "refused"
    return "unknown"
