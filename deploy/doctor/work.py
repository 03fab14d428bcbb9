"""Checks of the work: workers, backlog, failures, shrink holds, quarantine, pauses."""

from __future__ import annotations

from deploy.doctor.runner import Case, DoctorCheck, DoctorFinding, fail, ok, skip, warn
from shared.admin.outcomes import command
from shared.admin.site_status import Inspector
from shared.sitemap import w3c_dates
from shared.store.client import answering
from shared.store.keys import keys_of
from shared.store.layouts.migration import layouts
from shared.store.layouts.version import CURRENT
from shared.store.operations.checks import CheckStore
from shared.store.operations.loop_health import LoopHealth
from shared.store.operations.queues import Queues
from shared.store.operations.worker_registry import RegisteredWorker, WorkerRegistry, own_version
from shared.store.publishing.quarantine import Quarantine

STUCK_S = 60.0
FULL = 0.8
MOST_NAMED = 5

WAIT_TOO = "their new pages and edits wait, too"

_START = "start one: sitemapd up, or sitemapd run worker"


def _live_workers(case: Case) -> list[RegisteredWorker]:
    found = WorkerRegistry(case.client).list()
    return [worker for worker in found if worker.alive]


def _at_work(case: Case) -> bool:
    """Return True if a live worker works on the site."""
    return any(worker.works_on(case.name) for worker in _live_workers(case))


def _workers(case: Case) -> DoctorFinding:
    live = _live_workers(case)
    if not live:
        return fail("no worker is alive: events are accepted, and wait", _START)
    own, names = own_version(), ", ".join(worker.name for worker in live)
    if not any(each.beat is None or each.beat.state == "working" for each in live):
        first = live[0].name
        return warn(
            f"every worker is quiet or stopping: {names}", f"run: sitemapd workers resume {first}"
        )
    if other := [each for each in live if each.beat is None or each.beat.version != own]:
        detail = ", ".join(f"{e.name} {e.beat.version if e.beat else '(older)'}" for e in other)
        return warn(
            f"not of version {own}: {detail}", "install this version everywhere, then restart them"
        )
    sites = set(case.settings.sites)
    if unknown := [each.name for each in live if each.beat and sites - set(each.beat.sites)]:
        detail = f"workers without all configured sites: {', '.join(unknown)}"
        return warn(detail, "restart them: they read the configuration at start")
    return ok(f"{names}, of version {own}")


def _inbox(case: Case) -> DoctorFinding:
    status = Inspector(case.client, case.name, case.site).status()
    waiting, oldest = status["waiting_events"], status["oldest_s"] or 0.0
    detail = (
        f"{waiting} events wait, the oldest for {oldest:.0f} s" if waiting else "no event waits"
    )
    if oldest > STUCK_S and _at_work(case):
        return fail(detail, "see the log of the worker for the cause")
    if oldest > STUCK_S:
        return warn(detail, f"no worker works on this site: {_START}")
    if case.settings.inbox_limit and waiting > FULL * case.settings.inbox_limit:
        detail += f"; more than {case.settings.inbox_limit} are refused"
        return warn(detail, "start more workers, or raise inbox_limit")
    return ok(detail)


def _files_behind(case: Case) -> DoctorFinding:
    status = Inspector(case.client, case.name, case.site).status()
    dirty, since = status["dirty_files"], status["dirty_for_s"]
    detail = f"{dirty} files are behind, for {since:.0f} s" if dirty else "no file is behind"
    if dirty and since > STUCK_S + 2 * case.site.publish_interval:
        if _at_work(case):
            return fail(detail, "see the log of the worker for the cause")
        return warn(detail, f"no worker works on this site: {_START}")
    return ok(detail)


def _dead_letters(case: Case) -> DoctorFinding:
    with answering():
        found = case.client.xlen(keys_of(case.name).dead)
    if found:
        todo = (
            f"run: {command('dead', 'list', site=case.name)}; once the cause is fixed: "
            f"{command('dead', 'retry', '--all', site=case.name)}"
        )
        return warn(f"{found} dead letters", todo)
    return ok("no dead letters")


def _held(case: Case) -> DoctorFinding:
    held = Inspector(case.client, case.name, case.site).status()["held"]
    if held:
        named = ", ".join(f"{each['shard']} ({each['from']} -> {each['to']})" for each in held)
        todo = (
            f"if this is intended, run: sitemapd confirm --site {case.name}; else send the "
            "pages again"
        )
        return warn(f"the shrink guard holds {named}: {WAIT_TOO}", todo)
    return ok("no file is held")


def _loops(case: Case) -> DoctorFinding:
    found = LoopHealth(case.client).of_site(case.name)
    if found:
        detail = "; ".join(map(str, found[:MOST_NAMED]))
        detail += f"; {len(found) - MOST_NAMED} more" if len(found) > MOST_NAMED else ""
        todo = (
            "fix the named cause: the loop retries by itself. If a loop hangs, restart its worker"
        )
        return fail(detail, todo)
    return ok("no background loop fails or hangs")


def _quarantined(case: Case) -> DoctorFinding:
    stopped, single = Quarantine(case.client, case.name).read()
    if stopped is not None:
        return fail(f"nothing is published: {stopped.reason}", stopped.todo)
    for shard, cause in single.items():
        others = f", and {len(single) - 1} more" if len(single) > 1 else ""
        return fail(f"{shard} is not published: {cause.reason}{others}", cause.todo)
    return ok("every file can be written")


def _targets(case: Case) -> DoctorFinding:
    known = Inspector(case.client, case.name, case.site).status()["targets"]
    for each in known:
        name = f"{each['target']} ({each['url']})"
        if each["failing_s"]:
            return fail(f"{name} cannot be written: {each['reason']}", "it is tried again")
        if each["behind_s"] > STUCK_S:
            on = f" on the host {each['host']}" if each["host"] else ""
            return fail(
                f"{name} lacks what was published {each['behind_s']:.0f} s ago",
                f"check that a worker is alive{on}: sitemapd run worker --host NAME",
            )
    return ok(f"{len(known)} targets, none behind for {STUCK_S:.0f} s" if known else "one target")


def _paused(case: Case) -> DoctorFinding:
    paused = Queues(case.client, case.name).paused()
    if paused:
        detail = ", ".join(f"{queue} by {pause.by}" for queue, pause in paused.items())
        lines = "; ".join(command("queue", "resume", queue, site=case.name) for queue in paused)
        return warn(f"paused: {detail}", f"to resume: {lines}")
    return ok("no queue is paused")


def _layout(case: Case) -> DoctorFinding:
    layout = layouts(case.client, [case.name])[case.name]
    if layout.current:
        return ok(f"the state has layout {CURRENT}")
    finding = warn if layout.older else fail
    return finding(str(layout.refusal(case.name)), f"run: {command('migrate', site=case.name)}")


def _consistency(case: Case) -> DoctorFinding:
    report = CheckStore(case.client, case.name).latest()
    run = command("check", site=case.name)
    if report is None:
        return skip(f"never checked; run: {run}")
    detail = f"as of {w3c_dates.from_epoch_s(report.began_ms // 1000)}"
    if found := report.disagreeing():
        named = ", ".join(f"{kind} {times}" for kind, times in found.items())
        return fail(f"{named}, {detail}", f"run: {command('rebuild', site=case.name)}; then: {run}")
    return ok(f"consistent, {detail}")


CHECKS = (
    DoctorCheck(
        "workers", "whether a worker is alive, and the versions", _workers, _START, once=True,
        store=True, needs="parts",
    ),
    DoctorCheck("paused", "paused queues", _paused, _START, store=True),
    DoctorCheck("inbox", "age of the oldest waiting event", _inbox, _START, store=True),
    DoctorCheck(
        "publishing", "age of the oldest unpublished change", _files_behind, _START, store=True
    ),
    DoctorCheck("dead letters", "events that failed five times", _dead_letters, _START, store=True),
    DoctorCheck(
        "loops", "background loops that fail or hang", _loops, _START, store=True
    ),
    DoctorCheck("layout", "layout of the stored state", _layout, _START, store=True),
    DoctorCheck("quarantine", "files that cannot be written", _quarantined, _START, store=True),
    DoctorCheck(
        "targets", "whether each target has what was published", _targets, _START, store=True
    ),
    DoctorCheck(
        "consistency", "result of the last consistency check of the state", _consistency,
        _START, store=True,
    ),
    DoctorCheck("held", "files that the shrink guard holds", _held, _START, store=True),
)  # fmt: skip
