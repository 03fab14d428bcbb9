"""Checks of a site's pages: requests, the progress of the running check, and the last report.

One runs at a time per site: `CheckStore.begin` takes a lock that `CheckRun.advance` extends.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import redis

from shared.clock import now_ms
from shared.errors import CheckError
from shared.store.client import Scripts, answering
from shared.store.keys import Keys, keys_of
from shared.store.leases import Lease

ERROR, WARNING, OK = "error", "warning", "ok"
"""Severity: search engines reject something, give it less weight, or nothing is wrong."""

OF_STATE = (
    "lost-line", "unknown-line", "other-line", "wrong-count", "wrong-file", "wrong-claim",
    "not-reciprocal", "not-scheduled", "not-queued", "wrong-feed",
)  # fmt: skip
"""Checks that compare the state with itself (RELIABILITY N14)."""

COMPARED = ("missing", "stale", "extra")
OF_SOURCE = frozenset({*COMPARED, "source"})
"""Findings of a source diff, which is shown from the latest comparison: it may be newer than the
check. COMPARED are its counts.
"""

SAMPLES = 20
"""Maximum number of pages or files that a finding names."""

LOCK_MS = 60_000
"""Longer than any step between two calls of `CheckRun.advance`, such as a DNS look-up."""


class CheckBusyError(CheckError):
    """Another check of this site is running."""


class FindingSample(NamedTuple):
    """One page or file (`where`: a loc or a file name), and its problem."""

    where: str
    detail: str


class CheckFinding(NamedTuple):
    """Result of one `check` (a permanent name).

    `found` pages or files are concerned, `samples` are some of them; `means` explains the result in
    one sentence, `todo` the remedy; `commands` are those in it, as they stand there, with
    placeholders in capitals. `severity` is ERROR, WARNING or OK.
    """

    check: str
    severity: str
    found: int
    samples: tuple[FindingSample, ...]
    means: str
    todo: str
    commands: tuple[str, ...] = ()


class CheckReport(NamedTuple):
    """One complete check: its start and end (ms since 1970), its requester, the number of pages it
    read, whether it fetched what is `served`, and a finding of each check.
    """

    began_ms: int
    ended_ms: int
    by: str
    pages: int
    served: bool
    findings: tuple[CheckFinding, ...]

    @property
    def severity(self) -> str:
        """Severity of the worst finding."""
        found = {each.severity for each in self.findings}
        return next((severity for severity in (ERROR, WARNING) if severity in found), OK)

    def disagreeing(self) -> dict[str, int]:
        """Return the checks of OF_STATE that found inconsistencies, and their number."""
        return {
            each.check: each.found
            for each in self.findings
            if each.check in OF_STATE and each.severity != OK
        }

    def plain(self) -> dict[str, Any]:
        """Return the report as JSON values."""
        findings = [
            each._asdict() | {"samples": [sample._asdict() for sample in each.samples]}
            for each in self.findings
        ]
        return self._asdict() | {"severity": self.severity, "findings": findings}


class CheckProgress(NamedTuple):
    """Running check: its start (ms since 1970), requester and `owner`, the current step `what`, and
    the number of pages `done` `of` all.
    """

    began_ms: int
    by: str
    owner: str
    what: str
    done: int
    of: int


class ComparisonSummary(NamedTuple):
    """Last comparison of the whole site with its source: its start (ms since 1970), the number of
    pages that differ by kind, samples by kind, why it may be incomplete (empty: it is not), and
    whether the differences were repaired.
    """

    at_ms: int
    missing: int
    stale: int
    extra: int
    samples: Mapping[str, Sequence[FindingSample]]
    incomplete: str = ""
    repaired: bool = False

    def differing(self) -> list[tuple[str, int]]:
        """Return the counts of missing, stale and extra pages, if they were not repaired."""
        counts = [(what, int(getattr(self, what))) for what in COMPARED]
        return [(what, count) for what, count in counts if count and not self.repaired]


class CheckRun:
    """Running check; it holds the lock of the site."""

    def __init__(
        self, client: redis.Redis, keys: Keys, lock: Lease, by: str, asked: Mapping[str, int]
    ) -> None:
        self._client, self._keys, self._lock = client, keys, lock
        self._scripts = Scripts(client)
        self._asked, self.by = asked, by
        self.began_ms = now_ms()

    def advance(self, what: str, done: int, of: int) -> None:
        """Store the progress and extend the lock. Raises CheckError if the lock was lost."""
        if not self._lock.extend():
            raise CheckError("another check of this site has started; try again")
        said = CheckProgress(self.began_ms, self.by, self._lock.owner, what, done, of)
        with answering():
            self._client.set(self._keys.checking_progress, json.dumps(said), px=LOCK_MS)

    def store(self, report: CheckReport) -> None:
        """Store the report; requests made before the check began are answered."""
        with answering():
            kept: Any = {"report": json.dumps(report), "began": report.began_ms}
            self._client.hset(self._keys.checks, mapping=kept)
        pairs = [part for who, when in self._asked.items() for part in (who, when)]
        if pairs:
            self._scripts("operations/close_resyncs", [self._keys.check_requests], *pairs)

    def end(self) -> None:
        """Release the lock."""
        with answering():
            self._client.delete(self._keys.checking_progress)
        self._lock.release()


class CheckStore:
    """Checks of one site."""

    def __init__(self, client: redis.Redis, site: str) -> None:
        self._client, self._keys = client, keys_of(site)

    def ask(self, by: str) -> None:
        """Request a check for `by`: a worker begins one within seconds."""
        with answering():
            self._client.zadd(self._keys.check_requests, {by: now_ms()})

    def asked(self) -> dict[str, int]:
        """Return the requesters and their request times (ms since 1970), oldest first."""
        with answering():
            found: Any = self._client.zrange(self._keys.check_requests, 0, -1, withscores=True)
        return {who.decode(errors="replace"): int(when) for who, when in found}

    def begin(self, owner: str, by: str = "") -> CheckRun:
        """Begin a check by `owner` for `by`, by default for the oldest requester.

        Raises CheckBusyError if another check is running.
        """
        lock = Lease(self._client, self._keys.checking, owner, LOCK_MS)
        if not lock.take():
            holder = lock.holder() or "somebody"
            raise CheckBusyError(f"{holder} is checking this site already")
        asked = self.asked()
        return CheckRun(self._client, self._keys, lock, by or next(iter(asked), "schedule"), asked)

    def progress(self) -> CheckProgress | None:
        """Return the progress of the running check; None if none is running."""
        with answering():
            stored: Any = self._client.get(self._keys.checking_progress)
        return None if stored is None else CheckProgress(*json.loads(stored))

    def latest(self) -> CheckReport | None:
        """Return the report of the last complete check; None if there was none."""
        return report_of(self._get("report"))

    def last(self) -> tuple[CheckReport | None, ComparisonSummary | None]:
        """Return `latest` and `compared` in one round trip."""
        with answering():
            kept: Any = self._client.hmget(self._keys.checks, "report", "compared")
        report, compared = kept
        return report_of(report), comparison_of(compared)

    def last_ms(self) -> int:
        """Return when the last complete check began (ms since 1970); 0 if there was none."""
        return int(self._get("began") or 0)

    def set_compared(self, compared: ComparisonSummary) -> None:
        """Store the comparison of the site with its source."""
        self._set("compared", json.dumps(compared))

    def compared(self) -> ComparisonSummary | None:
        """Return the last comparison of the whole site with its source; None if there was none."""
        return comparison_of(self._get("compared"))

    def set_seen(self, seen: Mapping[str, Sequence[str]]) -> None:
        """Store the validators with which files were served, for the next check."""
        self._set("seen", json.dumps(seen))

    def seen(self) -> dict[str, list[str]]:
        """Return the validators of the last check."""
        stored = self._get("seen")
        return {} if stored is None else dict(json.loads(stored))

    def _get(self, field: str) -> bytes | None:
        with answering():
            stored: Any = self._client.hget(self._keys.checks, field)
        return None if stored is None else bytes(stored)

    def _set(self, field: str, value: str) -> None:
        with answering():
            self._client.hset(self._keys.checks, field, value)


@lru_cache(1_024)
def report_of(stored: bytes | None) -> CheckReport | None:
    """Return the stored report."""
    if not stored:
        return None
    head = dict(zip(CheckReport._fields, json.loads(stored), strict=True))
    read = (
        CheckFinding(
            check,
            severity,
            found,
            tuple(FindingSample(*one) for one in samples),
            means,
            todo,
            *map(tuple, commands),
        )
        for check, severity, found, samples, means, todo, *commands in head["findings"]
    )
    return CheckReport(**head | {"findings": tuple(read)})


def comparison_of(stored: bytes | None) -> ComparisonSummary | None:
    """Return the stored comparison."""
    if not stored:
        return None
    found = ComparisonSummary(*json.loads(stored))
    samples = {what: [FindingSample(*one) for one in some] for what, some in found.samples.items()}
    return found._replace(samples=samples)
