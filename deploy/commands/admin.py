"""Helpers of the commands: actor, audit records, times, files of saved events."""

from __future__ import annotations

import getpass
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from deploy.cli.output import answer, line
from shared.admin.outcomes import ActionOutcome, Actor
from shared.durable_files import sync_directory
from shared.errors import Fault, InvalidError

if TYPE_CHECKING:
    import redis

AdoptOption = Annotated[
    bool,
    typer.Option("--adopt", help="replace sitemaps that another state or another program wrote"),
]
YesOption = Annotated[bool, typer.Option("--yes", help="do not ask for confirmation")]
SaveOption = Annotated[
    Path | None,
    typer.Option("--save", help="new file for the events, as NDJSON"),
]


def actor(client: redis.Redis) -> Actor:
    """Return the user of this command as the actor of the audit log."""
    # Not for the many commands that take only options or times from here: it loads redis.
    from shared.store.operations.audit_log import AuditLog

    return Actor(f"cli:{user_name()}", "cli", AuditLog(client))


def act(
    client: redis.Redis, action: str, site: str, subject: str,
    work: Callable[[str], ActionOutcome], *, as_json: bool,
) -> None:  # fmt: skip
    """Do `work`, which gets the name of the user; record and print its outcome. An error of it is
    recorded, too.
    """
    me = actor(client)
    with me.doing(action, site, subject):
        outcome = work(me.who)
    say(me.record(outcome), as_json=as_json)


def user_name() -> str:
    """Return the name of the user of this process; the number of one without a name, as in
    containers.
    """
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # the latter since Python 3.13
        return str(os.getuid())


@contextmanager
def recorded(
    client: redis.Redis, action: str, site: str, subject: str = ""
) -> Iterator[Callable[[str], None]]:
    """Write one audit log entry for the block: the messages passed to the yielded function, or the
    error that ended it.
    """
    me, said = actor(client), list[str]()
    try:
        with me.doing(action, site, subject):
            yield said.append
    except KeyboardInterrupt:
        me.log.write(
            me.who, action, "interrupted", way=me.way, site=site, subject=subject, done=False
        )
        raise
    me.record(ActionOutcome(action, site, subject, "; ".join(said), ""))


def say(outcome: ActionOutcome, *, as_json: bool) -> None:
    """Print the outcome of an action."""
    if as_json:
        found: dict[str, Any] = outcome._asdict() | {"ids": list(outcome.ids)}
        answer(found, as_json=True)
        return
    subject = f"{outcome.subject}: " if outcome.subject else ""
    line(f"{subject}{outcome.said}")


def when(at_ms: int | None) -> str:
    """Format a time (ms since 1970) in UTC."""
    if at_ms is None:
        return "-"
    moment = datetime.fromtimestamp(at_ms / 1000, UTC)
    return moment.strftime("%Y-%m-%d %H:%M:%S.") + f"{at_ms % 1000:03}Z"


def age(ms: int | None) -> str:
    """Format a duration in ms."""
    if ms is None:
        return "-"
    for unit, size in (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1_000)):
        if ms >= 2 * size:
            return f"{ms // size} {unit}"
    return f"{ms} ms"


class Saved:
    """A new file for saved events, one per line: created before any event is removed, and synced to
    disk before the action counts as done.
    """

    def __init__(self, path: Path | None, what: str, site: str) -> None:
        """`path` by default names `what`, the site and the time. Raises InvalidError if it cannot
        be created, or exists.
        """
        stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
        self.path = path or Path(f"{site}-{what}-{stamp}.ndjson")
        self.lines = 0
        try:
            self._file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except OSError as error:
            raise InvalidError(Fault(str(self.path), "file", error.strerror or "")) from error

    def __call__(self, events: Iterable[bytes]) -> None:
        """Write `events` and sync them to disk. Raises InvalidError if that fails."""
        try:
            with os.fdopen(self._file, "wb") as file:
                for event in events:
                    file.write(event + b"\n")
                    self.lines += 1
                file.flush()
                os.fsync(file.fileno())
            sync_directory(self.path.parent)
        except OSError as error:
            raise InvalidError(Fault(str(self.path), "file", error.strerror or "")) from error
        if not self.lines:
            self.path.unlink()

    def told(self, outcome: ActionOutcome) -> ActionOutcome:
        """Return `outcome` with the name of the file, if it holds an event."""
        said = f"{outcome.said}; saved in {self.path}"
        return outcome._replace(said=said) if self.lines else outcome

    def __str__(self) -> str:
        return str(self.path)
