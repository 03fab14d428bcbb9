"""Outcomes of actions, with the equivalent command and the entry in the audit log.

Each action is one function that returns an ActionOutcome. Its caller records it once (ActionLog).
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Literal, NamedTuple, Protocol

from shared.errors import SitemapdError

_ID = re.compile(r"[0-9]{1,15}-[0-9]{1,10}", re.ASCII)


class ActionOutcome(NamedTuple):
    """Outcome of one action, as recorded in the audit log.

    `said` is a sentence, `subject` the target of the action, `command` the equivalent command line.
    `number` counts the targets, `ids` are the ids of the resulting events.
    """

    action: str
    site: str
    subject: str
    said: str
    command: str
    number: int = 0
    ids: Sequence[str] = ()


class ActionLog(Protocol):
    """Audit log (store/operations/audit_log.py)."""

    def write(
        self, who: str, action: str, outcome: str, *, way: Literal["console", "cli", "api"],
        role: str = "", site: str = "", subject: str = "", done: bool = True,
    ) -> str:  # fmt: skip
        """Record one action and return its id."""


class Actor(NamedTuple):
    """User who acts, by way of console, command line or the operator's API, and the audit log."""

    who: str
    way: Literal["console", "cli", "api"]
    log: ActionLog
    role: str = ""

    def record(self, outcome: ActionOutcome) -> ActionOutcome:
        """Record `outcome` and return it."""
        self.log.write(
            self.who, outcome.action, outcome.said, way=self.way, role=self.role,
            site=outcome.site, subject=outcome.subject,
        )  # fmt: skip
        return outcome

    @contextmanager
    def doing(self, action: str, site: str, subject: str = "") -> Iterator[None]:
        """Record a SitemapdError of the block as a failed action, and raise it again."""
        try:
            yield
        except SitemapdError as error:
            self.log.write(
                self.who, action, str(error), way=self.way, role=self.role, site=site,
                subject=subject, done=False,
            )  # fmt: skip
            raise


def is_id(text: str) -> bool:
    """Return True if `text` has the form of an event id or a dead letter id."""
    return _ID.fullmatch(text) is not None


def command(*words: str, site: str) -> str:
    """Return a command line of sitemapd for a shell."""
    return shlex.join(("sitemapd", *words, "--site", site))


def counted(number: int, what: str, several: str = "") -> str:
    """Return `1 event`, `2 events`; `several` replaces the plural with s."""
    return f"{number} {what if number == 1 else several or what + 's'}"
