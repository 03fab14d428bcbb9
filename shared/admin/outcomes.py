"""What an action came to, the command that does the same, and its entry in the audit log.

Each action is one function that gives an Outcome. Who did it is recorded by whoever called it
(Log), once.
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
    """What one action came to, in the words of the audit log.

    `said` is a sentence, `subject` what it was done to, `command` the line that does the same.
    `number` says how many it was done to, `ids` which events came of it.
    """

    action: str
    site: str
    subject: str
    said: str
    command: str
    number: int = 0
    ids: Sequence[str] = ()


class ActionLog(Protocol):
    """The audit log (store/operations/audit_log.py)."""

    def write(
        self, who: str, action: str, outcome: str, *, way: Literal["console", "cli"],
        role: str = "", site: str = "", subject: str = "", done: bool = True,
    ) -> str:  # fmt: skip
        """Record one action; its ident."""


class Actor(NamedTuple):
    """Who acts, by way of what, and where that is recorded."""

    who: str
    way: Literal["console", "cli"]
    log: ActionLog
    role: str = ""

    def record(self, outcome: ActionOutcome) -> ActionOutcome:
        """Record what was done; what was given."""
        self.log.write(
            self.who, outcome.action, outcome.said, way=self.way, role=self.role,
            site=outcome.site, subject=outcome.subject,
        )  # fmt: skip
        return outcome

    @contextmanager
    def doing(self, action: str, site: str, subject: str = "") -> Iterator[None]:
        """Record it, too, if what is done within fails, and let it fail."""
        try:
            yield
        except SitemapdError as error:
            self.log.write(
                self.who, action, str(error), way=self.way, role=self.role, site=site,
                subject=subject, done=False,
            )  # fmt: skip
            raise


def is_id(text: str) -> bool:
    """Whether `text` can be the id of an event, or of one that failed."""
    return _ID.fullmatch(text) is not None


def command(*words: str, site: str) -> str:
    """A line for a shell."""
    return shlex.join(("sitemapd", *words, "--site", site))


def counted(number: int, what: str, several: str = "") -> str:
    """`1 event`, `2 events`; `several` where an s does not do."""
    return f"{number} {what if number == 1 else several or what + 's'}"
