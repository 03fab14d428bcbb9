"""Audit log: actions in the console and on the command line, newest first."""

from __future__ import annotations

import re
import time
from typing import Any, Literal, NamedTuple

import redis

from shared.store.client import answering
from shared.store.keys import EVERYWHERE

KEY = EVERYWHERE + "audit"
MOST = 10_000
"""Number of entries kept at least: whole nodes of the stream are trimmed."""

Way = Literal["console", "cli", "api"]

_LONGEST = 2_100
_IDENT = re.compile(r"[0-9]{1,15}-[0-9]{1,10}")


class AuditEntry(NamedTuple):
    """One action: user `who` in `role` did `action` at `at` (s since 1970), by way of `way`.

    `site` and `subject` are its targets, both may be empty; `outcome` is a sentence, `done` is
    False if it was rejected or failed. Never holds a secret.
    """

    ident: str
    at: float
    who: str
    role: str
    way: str
    action: str
    site: str
    subject: str
    outcome: str
    done: bool


class AuditLog:
    """Audit log of all sites."""

    def __init__(self, client: redis.Redis) -> None:
        self._client = client

    def write(
        self, who: str, action: str, outcome: str, *, way: Way, role: str = "", site: str = "",
        subject: str = "", done: bool = True,
    ) -> str:  # fmt: skip
        """Record one action and return its id. Long texts are cut. Raises StoreDownError."""
        fields = {
            "at": f"{time.time():.3f}", "who": who, "role": role, "way": way, "action": action,
            "site": site, "subject": subject, "outcome": outcome, "done": str(int(done)),
        }  # fmt: skip
        with answering():
            ident: Any = self._client.xadd(
                KEY, {name: text[:_LONGEST] for name, text in fields.items()},
                maxlen=MOST, approximate=True,
            )  # fmt: skip
        return str(ident.decode())

    def read(self, before: str = "", count: int = 50) -> list[AuditEntry]:
        """Return the newest `count` entries before the id `before`, newest first."""
        newest = f"({before}" if _IDENT.fullmatch(before) else "+"
        with answering():
            found: Any = self._client.xrevrange(KEY, newest, "-", count)
        return [_read(ident, fields) for ident, fields in found]

    def find(self, ident: str) -> AuditEntry | None:
        """Return the entry with the id `ident`; None if there is none."""
        if not _IDENT.fullmatch(ident):
            return None
        with answering():
            found: Any = self._client.xrange(KEY, ident, ident)
        return _read(*found[0]) if found else None


def _read(ident: bytes, fields: dict[bytes, bytes]) -> AuditEntry:
    text = {name.decode(): value.decode(errors="replace") for name, value in fields.items()}
    texts = {name: text.get(name, "") for name in AuditEntry._fields[2:-1]}
    at, done = float(text.get("at") or 0), text.get("done") != "0"
    return AuditEntry(ident.decode(), at, **texts, done=done)
