"""The command `import`: every page of an existing sitemap, feed or list, as ordinary events."""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from pathlib import Path
from typing import Annotated

import redis
import typer

from deploy.console import HomeOption, JsonOption, Place, SiteOption, answer, find, out, progress
from shared.errors import ConfigError, Fault
from shared.inbox import Inbox
from shared.store.redis import answering
from worker.importer import Importer
from worker.plant import HEARTBEAT
from worker.pump import Pump
from worker.sources import estimate, read
from worker.translating import Said

SHOWN = 10


def import_(
    source: Annotated[
        str, typer.Option("--from", help="sitemap:URL-or-path, csv:FILE or ndjson:FILE")
    ],
    section: Annotated[str | None, typer.Option(help="where the pages go")] = None,
    report: Annotated[Path | None, typer.Option(help="write every refusal here, as NDJSON")] = None,
    home: HomeOption = None,
    site: SiteOption = None,
    as_json: JsonOption = False,
) -> None:
    """Bring in every page of an existing sitemap, feed or list, as it is there now.

    Pages that the source does not name stay as they are. Started again after a break, it goes on
    where it stood.
    """
    place = find(home, site)
    if section is not None and section not in place.site.limits:
        known = ", ".join(sorted(place.site.limits))
        raise ConfigError(Fault("--section", "config", f"not configured; there are: {known}"))
    client = place.client()
    importer = Importer(client, place.name, place.site, section)
    workers = _Workers(client, place)
    counts: Counter[tuple[str, str]] = Counter()
    first: list[Said] = []
    with (
        (report or Path(os.devnull)).open("w", encoding="utf-8") as lines,
        progress("importing", estimate(source), quiet=as_json) as seen,
    ):

        def say(said: Said) -> None:
            counts[said.kind, said.rule] += said.times
            if len(first) < SHOWN:
                first.append(said)
            lines.write(json.dumps(said._asdict()) + "\n")

        last = 0

        def advance(done: int) -> None:
            nonlocal last
            seen(done - last)
            last = done

        done = importer.run(
            source, read(source), say=say, report=lambda now: advance(now.read),
            drain=workers.drain,
        )  # fmt: skip
    workers.finish()
    rules = [{"what": kind, "rule": rule, "times": n} for (kind, rule), n in counts.most_common()]
    if as_json:
        shown = [said._asdict() for said in first]
        answer(done._asdict() | {"said": rules, "first": shown}, as_json=True)
        return
    answer(done._asdict() | {"said": rules}, as_json=False)
    for said in first:
        out.print(f"{said.kind} {said.where}: {said.detail} ({said.rule})", highlight=False)
    if sum(counts.values()) > len(first) and report is None:
        out.print("more: give --report FILE to have all of them")


class _Workers:
    """Whoever drains the inbox: the workers that run, or this process if none does."""

    def __init__(self, client: redis.Redis, place: Place) -> None:
        self._client = client
        self._inbox = Inbox(client, place.name)
        self._name = f"cli-{os.getpid()}"
        self._pump = Pump(place.settings, client, place.name, self._name)

    def drain(self) -> None:
        """Let some of the backlog go."""
        if self._others():
            time.sleep(0.02)
        else:
            self._pump.apply_all()

    def finish(self) -> None:
        """Wait until everything is published."""
        while self._inbox.waiting() or self._pump.publisher.state.dirty(1):
            if self._others():
                time.sleep(0.02)
            else:
                self._pump.run()
        self._inbox.leave(self._name)

    def _others(self) -> bool:
        names = self._inbox.consumers()
        with answering():
            return any(self._client.exists(f"{HEARTBEAT}{name}") for name in names)
