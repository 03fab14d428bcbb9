"""Checks of what a site lists: who wants one, how far the one at work is, what the last one found.

One at a time for each site, whoever does it: `begin` takes a lock that `Run.advance` keeps.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import redis

from shared.errors import CheckError
from shared.store.client import Scripts, answering
from shared.store.keys import Keys

ERROR, WARNING, OK = "error", "warning", "ok"
"""How bad a finding is: search engines refuse something, take it for less, or nothing is wrong."""

OF_STATE = (
    "lost-line", "unknown-line", "other-line", "wrong-count", "wrong-file", "wrong-claim",
    "not-reciprocal", "not-scheduled", "not-queued", "wrong-feed",
)  # fmt: skip
"""The checks that hold the state against itself (RELIABILITY N14)."""

SAMPLES = 20
"""Pages or files that a finding names at most."""

LOCK_MS = 60_000
"""Longer than anything between two calls of `Run.advance`: to resolve a name and connect, say."""


class CheckBusyError(CheckError):
    """Somebody else checks this site."""


class FindingSample(NamedTuple):
    """One page or file (`where`: a loc or a file's name), and what is the matter with it."""

    where: str
    detail: str


class CheckFinding(NamedTuple):
    """What one `check` (a name that stays) came to.

    `found` pages or files are concerned, `samples` are some of them; `means` says in one sentence
    what it is, `todo` in another what to do, with the command. `severity` is ERROR, WARNING or OK.
    """

    check: str
    severity: str
    found: int
    samples: tuple[FindingSample, ...]
    means: str
    todo: str


class CheckReport(NamedTuple):
    """One whole check: when it began and ended (ms since 1970), who asked for it, how many pages
    it looked at, whether it fetched what is `served`, and a finding of each check.
    """

    began_ms: int
    ended_ms: int
    by: str
    pages: int
    served: bool
    findings: tuple[CheckFinding, ...]

    @property
    def severity(self) -> str:
        """That of the worst finding."""
        found = {each.severity for each in self.findings}
        return next((severity for severity in (ERROR, WARNING) if severity in found), OK)

    def disagreeing(self) -> dict[str, int]:
        """The checks of OF_STATE that found something, and how much."""
        return {
            each.check: each.found
            for each in self.findings
            if each.check in OF_STATE and each.severity != OK
        }

    def plain(self) -> dict[str, Any]:
        """All of it, fit for JSON."""
        findings = [
            each._asdict() | {"samples": [sample._asdict() for sample in each.samples]}
            for each in self.findings
        ]
        return self._asdict() | {"severity": self.severity, "findings": findings}


class CheckProgress(NamedTuple):
    """The check at work: since when (ms), asked for by whom, done by whom, `what` it is at, and how
    many pages `of` all it has looked at.
    """

    began_ms: int
    by: str
    owner: str
    what: str
    done: int
    of: int


class ComparisonSummary(NamedTuple):
    """The last comparison of the whole site with its source: when it began (ms), how many pages
    differed, some of them by what they were, why it may not be complete (empty: it is), whether
    what differed was repaired.
    """

    at_ms: int
    missing: int
    stale: int
    extra: int
    samples: Mapping[str, Sequence[FindingSample]]
    incomplete: str = ""
    repaired: bool = False


class CheckRun:
    """A check at work; nobody else may do one while it goes on."""

    def __init__(
        self, client: redis.Redis, keys: Keys, token: str, by: str, asked: Mapping[str, int]
    ) -> None:
        self._client, self._keys, self._token = client, keys, token
        self._scripts = Scripts(client)
        self._asked, self.by = asked, by
        self.began_ms = time.time_ns() // 1_000_000

    def advance(self, what: str, done: int, of: int) -> None:
        """Tell how far it is, and keep the lock; CheckError if that was lost."""
        if not self._scripts(
            "publishing/extend_lease", [self._keys.checking], self._token, LOCK_MS
        ):
            raise CheckError("another check of this site has begun meanwhile; try again")
        owner = self._token.rpartition(":")[0]
        said = CheckProgress(self.began_ms, self.by, owner, what, done, of)
        with answering():
            self._client.set(self._keys.checking_progress, json.dumps(said), px=LOCK_MS)

    def store(self, report: CheckReport) -> None:
        """Keep what it found; who asked before it began is answered."""
        with answering():
            kept: Any = {"report": json.dumps(report), "began": report.began_ms}
            self._client.hset(self._keys.checks, mapping=kept)
        pairs = [part for who, when in self._asked.items() for part in (who, when)]
        if pairs:
            self._scripts("operations/close_resyncs", [self._keys.checks_asked], *pairs)

    def end(self) -> None:
        """Let the next one begin."""
        with answering():
            self._client.delete(self._keys.checking_progress)
        self._scripts("lua/unlock", [self._keys.checking], self._token)


class CheckStore:
    """The checks of one site."""

    def __init__(self, client: redis.Redis, site: str) -> None:
        self._client, self._keys = client, Keys(site)

    def ask(self, by: str) -> None:
        """`by` wants a check now: a worker begins one within seconds."""
        with answering():
            self._client.zadd(self._keys.checks_asked, {by: time.time_ns() // 1_000_000})

    def asked(self) -> dict[str, int]:
        """Who wants a check and since when (ms), the first one first."""
        with answering():
            found: Any = self._client.zrange(self._keys.checks_asked, 0, -1, withscores=True)
        return {who.decode(errors="replace"): int(when) for who, when in found}

    def begin(self, owner: str, by: str = "") -> CheckRun:
        """Begin a check: for `by`, by default for whoever asked first. `owner` is who does it.

        CheckBusyError if somebody is at it.
        """
        token = f"{owner}:{secrets.token_hex(8)}"
        with answering():
            if not self._client.set(self._keys.checking, token, nx=True, px=LOCK_MS):
                holder: Any = self._client.get(self._keys.checking) or b"somebody:"
                name = holder.decode().rpartition(":")[0]
                raise CheckBusyError(f"{name} checks this site just now; one at a time")
        asked = self.asked()
        return CheckRun(self._client, self._keys, token, by or next(iter(asked), "schedule"), asked)

    def progress(self) -> CheckProgress | None:
        """How far the check at work is; None if there is none."""
        with answering():
            stored: Any = self._client.get(self._keys.checking_progress)
        return None if stored is None else CheckProgress(*json.loads(stored))

    def latest(self) -> CheckReport | None:
        """What the last whole check found."""
        return _report(self._get("report"))

    def last(self) -> tuple[CheckReport | None, ComparisonSummary | None]:
        """`latest` and `compared` in one round trip."""
        with answering():
            found: Any = self._client.hmget(self._keys.checks, "report", "compared")
        return _report(found[0]), _compared(found[1])

    def last_ms(self) -> int:
        """When the last whole check began; 0 if there was none."""
        return int(self._get("began") or 0)

    def set_compared(self, compared: ComparisonSummary) -> None:
        """Keep how the site compared with its source."""
        self._set("compared", json.dumps(compared))

    def compared(self) -> ComparisonSummary | None:
        """The last comparison of the whole site with its source."""
        return _compared(self._get("compared"))

    def set_seen(self, seen: Mapping[str, Sequence[str]]) -> None:
        """Keep, for the next check, the validators with which files were served."""
        self._set("seen", json.dumps(seen))

    def seen(self) -> dict[str, list[str]]:
        """What `set_seen` kept last."""
        stored = self._get("seen")
        return {} if stored is None else dict(json.loads(stored))

    def _get(self, field: str) -> bytes | None:
        with answering():
            stored: Any = self._client.hget(self._keys.checks, field)
        return None if stored is None else bytes(stored)

    def _set(self, field: str, value: str) -> None:
        with answering():
            self._client.hset(self._keys.checks, field, value)


def _report(stored: bytes | None) -> CheckReport | None:
    if stored is None:
        return None
    head = dict(zip(CheckReport._fields, json.loads(stored), strict=True))
    read = (
        CheckFinding(
            check, severity, found, tuple(FindingSample(*one) for one in samples), means, todo
        )
        for check, severity, found, samples, means, todo in head["findings"]
    )
    return CheckReport(**head | {"findings": tuple(read)})


def _compared(stored: bytes | None) -> ComparisonSummary | None:
    if stored is None:
        return None
    found = ComparisonSummary(*json.loads(stored))
    samples = {what: [FindingSample(*one) for one in some] for what, some in found.samples.items()}
    return found._replace(samples=samples)
