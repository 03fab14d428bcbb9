"""Note refused requests for the administrator.

A refusal leaves no state (RELIABILITY 2): no key that decides anything is written, and the notes
are bounded under any load (T13). Each process writes MOST_NOTES a second, from a thread of its own
and in one round trip, to a stream that keeps REFUSED entries and evicts nothing else; further
refusals are only counted. So 10,000 refused requests a second cost Redis one flush of its log a
second, and cost accepted senders nothing. Of an unauthenticated request only code, reason and
address are noted, since an attacker chooses everything else (T1, T28); a body, a secret, a token or
a signature is never noted (T30). If Redis does not answer, the notes of that second are lost, and
nothing else (F20).
"""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import chain, islice, zip_longest
from typing import Any

import redis

from shared.config.settings import Settings
from shared.errors import StoreError
from shared.store.client import answering
from shared.store.connection import connect
from shared.store.keys import REFUSED, keys_of
from shared.telemetry import logs

MOST_NOTES = 10
EVERY_S = 1.0
MOST_FAULTS = 5
_LONGEST = 300
_TIMEOUT_S = 1.0
_PULSE_S = 26 * 3600  # as in count.lua
_NOTED = ("code", "reason", "status", "request", "client", "source", "delivery")
_NOTED_UNVERIFIED = ("code", "reason", "status", "request", "client")
_UNVERIFIED_CODES = frozenset({"unauthorized", "stale"})
_LOG = logs.logger("refusals")

Note = dict[str, Any]


class RejectionLog:
    """Notes refusals of configured sites from one daemon thread, which starts with the first
    refusal.

    Not earlier: a server may fork after the application was made, and threads do not survive a
    fork.
    """

    def __init__(self, settings: Settings, every_s: float = EVERY_S) -> None:
        """`every_s` is the pause after each write, in seconds."""
        self._redis_url, self._every_s = settings.redis_url, every_s
        self._sites = frozenset(settings.sites)
        self._lock = threading.Lock()
        self._some = threading.Event()
        self._counts: Counter[tuple[str, str]] = Counter()
        self._notes: dict[tuple[str, str], list[Note]] = {}
        self._thread: threading.Thread | None = None

    def follow(self, settings: Settings) -> None:
        """Note refusals of the sites of `settings` from now on."""
        self._sites = frozenset(settings.sites)

    def note(self, site: str | None, facts: Mapping[str, Any]) -> None:
        """Note the refusal of a request to `site` with its `facts`; raises nothing, never
        waits.

        Refusals of sites that are not configured are not noted.
        """
        if site not in self._sites or site is None:
            return
        kind = site, str(facts.get("code", facts.get("status", "")))
        with self._lock:
            self._counts[kind] += 1
            notes = self._notes.setdefault(kind, [])
            if len(notes) < MOST_NOTES:
                notes.append(note_of(facts))
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="refusals", daemon=True)
                self._thread.start()
        self._some.set()

    def _run(self) -> None:
        client = connect(self._redis_url, _TIMEOUT_S)
        while True:
            self._some.wait()
            self._some.clear()
            self.flush(client)
            time.sleep(self._every_s)

    def flush(self, client: redis.Redis) -> None:
        """Write the notes since the last flush in one round trip; raises nothing."""
        with self._lock:
            counts, self._counts = self._counts, Counter()
            notes, self._notes = self._notes, {}
        try:
            _write(client, counts, notes)
        except StoreError as error:
            _LOG.warning("refusals not recorded", reason=str(error), lost=counts.total())


def note_of(facts: Mapping[str, Any]) -> Note:
    """Return the note of a refusal; of an unauthenticated request only _NOTED_UNVERIFIED."""
    wanted = _NOTED_UNVERIFIED if facts.get("code") in _UNVERIFIED_CODES else _NOTED
    note: Note = {name: _short(facts[name]) for name in wanted if facts.get(name) is not None}
    if wanted is _NOTED and (faults := facts.get("faults")):
        note["faults"] = [
            {"rule": fault.rule, "field": _short(fault.field), "detail": _short(fault.detail)}
            for fault in faults[:MOST_FAULTS]
        ]
    return note


def _short(value: Any) -> Any:
    """Return a text cut to _LONGEST characters, without half surrogate pairs, which Redis does not
    take.
    """
    if not isinstance(value, str):
        return value
    return value[:_LONGEST].encode("utf-8", "backslashreplace").decode()


def _chosen(notes: Mapping[tuple[str, str], list[Note]]) -> Iterator[tuple[str, Note]]:
    """Yield MOST_NOTES notes, of each kind in turn: a flood does not hide the faults of another
    sender.
    """
    turns = zip_longest(*([(site, note) for note in of] for (site, _), of in notes.items()))
    return islice((each for each in chain.from_iterable(turns) if each), MOST_NOTES)


def _write(
    client: redis.Redis,
    counts: Counter[tuple[str, str]],
    notes: Mapping[tuple[str, str], list[Note]],
) -> None:
    minute = int(time.time() // 60)
    with answering():
        pipe = client.pipeline(transaction=False)
        for (site, code), number in counts.items():
            keys = keys_of(site)
            pulse = keys.pulse(minute)
            pipe.hincrby(keys.stats, f"refused:{code}", number)
            pipe.hincrby(pulse, f"refused:{code}", number)
            pipe.expire(pulse, _PULSE_S)
        for site, note in _chosen(notes):
            text = json.dumps(note, separators=(",", ":"))
            stream = keys_of(site).refused
            pipe.xadd(stream, {"refused": text}, maxlen=REFUSED, approximate=True)
        pipe.execute()
