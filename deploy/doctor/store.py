"""Checks of the machine: the configuration file, Redis, the clock."""

from __future__ import annotations

import stat
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from redis.exceptions import NoPermissionError

from deploy.doctor import replicas, rights
from deploy.doctor.runner import Case, DoctorCheck, DoctorFinding, fail, ok, warn
from shared.config.locations import DIRECTORY
from shared.errors import StoreError, UnsafeStoreError
from shared.store.client import answering
from shared.store.server_settings import ServerVersion, check_settings

PINGS = 20
SLOW_S = 0.02
SKEW_WARN_S = 1.0
SKEW_FAIL_S = 60.0
FULL = 0.9


def secrets_file(path: Path) -> Callable[[Case], DoctorFinding]:
    """Return the check that other users cannot read or change the configuration in `path`, and in
    the site files beside it.
    """

    def look(_case: Case) -> DoctorFinding:
        further = sorted(path.parent.glob(f"{DIRECTORY}/*.toml"))
        modes = {each: stat.S_IMODE(each.stat().st_mode) for each in (path, *further)}
        worst = max(modes, key=lambda each: modes[each] & (stat.S_IWOTH | stat.S_IROTH))
        return _judged(
            worst, modes[worst], f", and {len(further)} site files no wider" * bool(further)
        )

    return look


def _judged(path: Path, mode: int, others: str) -> DoctorFinding:
    detail = f"{path} has mode {mode:04o}"
    if mode & stat.S_IROTH:
        return warn(
            f"{detail}: every user of this machine can read its secrets",
            f"run: chmod o-rwx {path}",
        )
    if mode & stat.S_IWOTH:
        return fail(
            f"{detail}: every user of this machine can change it", f"run: chmod o-rwx {path}"
        )
    return ok(f"{detail}{others}")


def _answers(case: Case) -> DoctorFinding:
    with answering():
        info: Any = case.client.info("server") | case.client.info("memory")
    used, most = int(info["used_memory"]), int(info["maxmemory"])
    detail = f"{ServerVersion.of(info)}, {used / 2**20:.1f} MB of "
    detail += f"{most / 2**20:.0f} MB" if most else "no limit"
    if most and used > FULL * most:
        return warn(detail, "raise maxmemory: once it is reached, events are refused with 503")
    return ok(detail)


def _settings(case: Case) -> DoctorFinding:
    try:
        check_settings(case.client)
    except UnsafeStoreError as error:
        todo = "set them in the configuration of Redis, and by CONFIG SET until its next restart"
        if case.settings.allow_loss:
            return warn(f"{error.risk}; allow_loss is set", todo)
        return fail(error.risk, todo)
    except StoreError as error:
        if not isinstance(error.__cause__, NoPermissionError):
            raise
        return warn("this Redis user may not read the settings", "grant it +config|get and +info")
    return ok("appendonly yes, appendfsync always, noeviction")


def _log(case: Case) -> DoctorFinding:
    with answering():
        info: Any = case.client.info("persistence")
    if int(info.get("loading", 0)):
        return warn("Redis is still loading its log", "wait until it is loaded")
    bad = [
        name
        for name in ("aof_last_write_status", "aof_last_bgrewrite_status", "rdb_last_bgsave_status")
        if info.get(name, "ok") != "ok"
    ]
    if bad:
        return fail(f"{', '.join(bad)}: failed", "see the log of Redis: its disk may be full")
    return ok("the last write of the log succeeded")


def _latency(case: Case) -> DoctorFinding:
    took = []
    with answering():
        for _ in range(PINGS):
            begun = time.perf_counter()
            case.client.ping()
            took.append(time.perf_counter() - begun)
    median = statistics.median(took)
    detail = f"{PINGS} PINGs: median {median * 1e3:.2f} ms, slowest {max(took) * 1e3:.1f} ms"
    if median > SLOW_S:
        return warn(detail, "run Redis on this machine, or reduce its load")
    return ok(detail)


def _clock(case: Case) -> DoctorFinding:
    with answering():
        before = case.now()
        found: Any = case.client.time()
        middle = (before + case.now()) / 2
    offset = found[0] + found[1] / 1e6 - middle
    detail = f"the clock of Redis is {abs(offset):.1f} s {'ahead' if offset > 0 else 'behind'}"
    todo = "synchronize both clocks by NTP: signatures older than 5 minutes are refused"
    if abs(offset) > SKEW_FAIL_S:
        return fail(detail, todo)
    return warn(detail, todo) if abs(offset) > SKEW_WARN_S else ok(detail)


def checks(config: Path) -> tuple[DoctorCheck, ...]:
    """Return the checks of the machine, for the configuration in the file `config`."""
    see = "see the log of Redis"
    return (
        DoctorCheck(
            "secrets", "who can read sitemapd.toml", secrets_file(config),
            "give this user access to the file", once=True,
        ),
        DoctorCheck(
            "redis", "whether Redis answers, and its memory", _answers, see, once=True, store=True,
            needs="redis",
        ),
        DoctorCheck(
            "redis settings", "whether acknowledged events can be lost", _settings, see,
            once=True, store=True,
        ),
        replicas.CHECK,
        DoctorCheck(
            "redis log", "whether its last write succeeded", _log, see, once=True, store=True,
        ),
        DoctorCheck(
            "redis latency", "response time of Redis", _latency, see, once=True, store=True,
        ),
        rights.CHECK,
        DoctorCheck(
            "clock", "difference between this clock and that of Redis", _clock, see,
            once=True, store=True,
        ),
    )  # fmt: skip
