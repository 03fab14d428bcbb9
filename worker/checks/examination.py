"""Check of a whole site: pages, state, files, last comparison with the source, served files."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import redis

from shared.clock import now_ms
from shared.config.filenames import index_name
from shared.config.sites.site import Site
from shared.errors import PublishError
from shared.sitemap.shards import HOSTS, Shard
from shared.store.operations.checks import CheckReport, CheckRun, CheckStore
from shared.store.pages.page_scan import PageScan
from shared.store.publishing.cross_submission import CrossSubmission
from shared.store.publishing.publish_batch import PublishedFile
from shared.store.publishing.publish_state import PublishState
from worker.checks import catalog
from worker.checks.consistency.examination import Consistency
from worker.checks.page_checks import PageChecks
from worker.checks.progress import CheckTally
from worker.checks.robots_check import RobotsCheck
from worker.checks.served_files import ServedFilesCheck
from worker.checks.verify import Difference, Verification
from worker.publishing.targets.registry import open_own

TELL_S = 0.5
"""Seconds between two progress reports."""

AGAIN_S = 0.3
_ROUNDS = 3
_NAMES = {"missing": "missing-file", "differs": "different-file", "unexpected": "extra-file"}


class Examination:
    """One check of one site, by the worker `owner`. It changes only the stored check results."""

    def __init__(
        self, client: redis.Redis, name: str, site: Site, owner: str,
        breathe: Callable[[], None] = lambda: None, *, elsewhere: Sequence[str] = (),
    ) -> None:  # fmt: skip
        """Prepare the check; `breathe` is called after every few milliseconds of work.

        It may wait, and raises CheckError to abort the check. Pages of other sites begin with one
        of `elsewhere`.
        """
        self._elsewhere = elsewhere
        self._client, self._name, self._site, self._owner = client, name, site, owner
        self._breathe = breathe
        self._state, self._listing = PublishState(client, name), PageScan(client, name)
        self._checks = CheckStore(client, name)

    def run(
        self, *, by: str = "", served: bool = True, seen: Callable[[int], None] = lambda _: None
    ) -> CheckReport:
        """Check everything and store the findings; with `served`, fetch the served files as well.

        `seen` is called with numbers of examined pages. Raises CheckBusyError if a check of the
        site is running, CheckError if this one was aborted, StoreError.
        """
        run = self._checks.begin(self._owner, by)
        try:
            return self._run(run, served, seen)
        finally:
            run.end()

    def pages(self) -> int:
        """Return the number of pages to examine."""
        return sum(file.urls for file in self._files().values())

    def _run(self, run: CheckRun, served: bool, seen: Callable[[int], None]) -> CheckReport:
        files, tally = self._files(), CheckTally()
        going = _Going(run, sum(file.urls for file in files.values()), self._breathe, seen)
        serving = ServedFilesCheck(self._site, tally, self._checks.seen())
        going.at("robots.txt")
        barriers = self._barriers(serving if served else None, going)
        going.at("pages")
        indexes = (index_name(self._site, page) for page in self._index_pages())
        pages = PageChecks(self._site, tally, barriers, self._elsewhere)
        pages.look(files, indexes, self._listing, going.step)
        self._hosts(tally)
        going.at("state")
        for flaw in Consistency(self._client, self._name, self._site).flaws(going.step):
            tally.add(flaw.kind, flaw.where, flaw.detail)
        going.at("files")
        self._audit(tally, going)
        if served:
            going.at("served")
            self._serve(serving, tally, going)
        findings = catalog.findings(tally, served=served) + catalog.of_source(
            self._checks.compared(), configured=bool(self._site.source.get_secret_value())
        )
        ended = now_ms()
        report = CheckReport(run.began_ms, ended, run.by, going.done, served, tuple(findings))
        going.tell()
        run.store(report)
        return report

    def _files(self) -> dict[Shard, PublishedFile]:
        return self._state.files(sorted({*self._site.limits, *self._state.sections()}))

    def _index_pages(self) -> list[int]:
        return self._state.pages(self._site.index_shards) if self._site.index else []

    def _barriers(self, serving: ServedFilesCheck | None, going: _Going) -> list[RobotsCheck]:
        """Return robots.txt of the web root, if it is that of the host, and robots.txt as
        served.
        """
        found: dict[bytes, str] = {}
        if self._site.base.path == "/":
            found[self._own_robots()] = "robots.txt"
        if serving is not None and (content := serving.robots(going.step)) is not None:
            found.setdefault(content, "robots.txt as it is served")
        return [RobotsCheck(content, source) for content, source in found.items()]

    def _own_robots(self) -> bytes:
        try:
            root = open_own(self._site)
        except PublishError:
            return b""  # the check of the files reports it
        try:
            return root.read_own("robots.txt") or b""
        finally:
            root.close()

    def _hosts(self, tally: CheckTally) -> None:
        """Note the sites of `outputs.hosts` that are not listed for want of consent."""
        if hosts := self._site.outputs.hosts:
            known = CrossSubmission(self._client, self._name).records()
            for other in hosts:
                if other != self._name and not (other in known and known[other].named):
                    tally.add("not-named", other, self._site.base.url(HOSTS))

    def _audit(self, tally: CheckTally, going: _Going) -> None:
        """Compare every file with the state.

        Only a difference found in every round counts: others come from files published meanwhile.
        """
        audit = Verification(self._client, self._name, self._site, self._owner)
        wrong: set[Difference] | None = None
        try:
            for number in range(_ROUNDS):
                going.wait(AGAIN_S * (number > 0))
                found = set(audit.verify(lambda _: going.step(0)))
                wrong = found if wrong is None else wrong & found
                if not wrong:
                    return
        except PublishError as error:
            tally.add("different-file", str(self._site.web_root), f"not all compared: {error}")
        for difference in sorted(wrong or ()):
            tally.add(_NAMES[difference.what], difference.name, difference.what)

    def _serve(self, serving: ServedFilesCheck, tally: CheckTally, going: _Going) -> None:
        try:
            serving.look(self._index_pages(), self._files(), going.step)
        except PublishError as error:
            tally.add("served", str(self._site.web_root), str(error))
        self._checks.set_seen(serving.validators)


class _Going:
    """Progress of a check, stored at intervals."""

    def __init__(
        self, run: CheckRun, of: int, breathe: Callable[[], None], seen: Callable[[int], None]
    ) -> None:
        self._run, self._of, self._breathe, self._seen = run, of, breathe, seen
        self._what, self._told_at = "", float("-inf")
        self.done = 0

    def at(self, what: str) -> None:
        """Start the stage `what`."""
        self._what = what
        self.tell()

    def step(self, pages: int) -> None:
        """Count so many more examined pages."""
        self.done += pages
        if pages:
            self._seen(pages)
        if time.monotonic() - self._told_at > TELL_S:
            self.tell()
        self._breathe()

    def wait(self, seconds: float) -> None:
        """Wait for so many seconds."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            time.sleep(0.02)
            self.step(0)

    def tell(self) -> None:
        """Store the progress now."""
        self._told_at = time.monotonic()
        self._run.advance(self._what, self.done, self._of)
