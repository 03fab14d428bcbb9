"""Changes of the configuration by commands: where it is, what changed, where it is in force."""

from __future__ import annotations

import os
import shlex
import time
import tomllib
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deploy.cli.homes import find_home
from deploy.cli.output import answer, line, note
from deploy.local.processes import served_at
from deploy.local.redis_socket import socket_url
from shared.config.edit.config_file import ConfigEdit, ConfigFile
from shared.config.settings import FILE
from shared.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Iterator

    import redis

    from shared.store.operations.config_reports import ConfigReport

IN_FORCE_S = 10.0
"""Seconds that a command waits until every process has the new configuration in force."""

_TIMEOUT_S = 2.0


class ConfigTarget:
    """The configuration file of a home, and the Redis of its processes."""

    def __init__(self, home: Path | None) -> None:
        self.home = find_home(home)
        self.file = ConfigFile(self.home / FILE)

    @contextmanager
    def client(self, edit: ConfigEdit) -> Iterator[redis.Redis]:
        """Yield a client of the Redis of the configuration before `edit`."""
        from shared.store.connection import connect

        url = edit.before.redis_url or socket_url(self.home)
        with closing(connect(url, _TIMEOUT_S)) as client:
            yield client

    def finish(
        self, edit: ConfigEdit, action: str, site: str, subject: str, *, next_step: str,
        as_json: bool, further: dict[str, Any] | None = None,
    ) -> None:  # fmt: skip
        """Record the change in the audit log, await that it is in force, and print it."""
        from deploy.commands.admin import actor
        from shared.admin.outcomes import ActionOutcome

        try:
            with self.client(edit) as client:
                said = "the configuration was changed"
                actor(client).record(ActionOutcome(action, site, subject, said, ""))
                reports = _await_in_force(client, edit.revision)
        except StoreError:
            reports = {}
        behind = sorted(name for name, each in reports.items() if each.revision != edit.revision)
        starting = sorted({name for each in reports.values() for name in each.next_start})
        if as_json:
            found = {
                "changed": list(edit.lines), "revision": edit.revision,
                "in_force": sorted(reports.keys() - set(behind)), "not_yet": behind,
                "next_start": starting, **(further or {}),
            }  # fmt: skip
            answer(found, as_json=True)
            return
        for each in edit.lines:
            line(each, style="green" if each.startswith("+") else "red")
        for name, value in (further or {}).items():
            line(f"{name}: {value}")
        line(_where(reports, behind))
        if starting:
            line(f"takes effect at the next start: {', '.join(starting)}")
        if next_step:
            line(f"next: {next_step}")


def say_in_force(home: Path) -> None:
    """Say which processes of `home` work by an earlier configuration: that of the file is refused.

    Its Redis is found even so, where the file names it or it is the embedded one.
    """
    from shared.store.connection import connect
    from shared.store.operations.config_reports import ConfigReports

    try:
        given = tomllib.loads((home / FILE).read_text(encoding="utf-8")).get("redis_url", "")
    except (OSError, ValueError):
        given = ""
    url = os.environ.get("SITEMAPD_REDIS_URL") or given or socket_url(home)
    try:
        with closing(connect(str(url), _TIMEOUT_S)) as client:
            reports = ConfigReports(client).read()
    except (StoreError, ValueError):
        return
    if reports:
        note(f"the configuration before stays in force in {', '.join(sorted(reports))}")


def send_line(home: Path, page: str, site: str, *more: str) -> str:
    """Return the command that sends a first event for `page`, to the `up` of `home` if it runs."""
    served = served_at(home)
    to = ("--to", served) if served else ()
    return shlex.join(("sitemapd", "event", "send", page, "--site", site, *more, *to, "--watch"))


def _where(reports: dict[str, ConfigReport], behind: list[str]) -> str:
    if not reports:
        return "no process runs: it takes effect at the next start"
    if behind:
        return f"not yet in force in {', '.join(behind)}: sitemapd status says why"
    return f"in force in {', '.join(sorted(reports))}"


def _await_in_force(client: redis.Redis, revision: str) -> dict[str, ConfigReport]:
    """Return the reports of all processes, once they have `revision` in force, refuse it, or
    IN_FORCE_S are over. Raises StoreError.
    """
    from shared.store.operations.config_reports import ConfigReports

    deadline, reader = time.monotonic() + IN_FORCE_S, ConfigReports(client)
    while True:
        reports = reader.read()
        open_ = [one for one in reports.values() if one.revision != revision and not one.refused]
        if not open_ or time.monotonic() > deadline:
            return reports
        time.sleep(0.1)
