"""Runner of `sitemapd doctor`: checks, their findings, and isolation of their failures."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

import redis

from shared.config.settings import Settings
from shared.config.sites.site import Site
from shared.errors import NoWritesError, SitemapdError, StoreDownError

_DOWN = "Redis does not answer"
_START = "start Redis, or correct redis_url in sitemapd.toml"

Status = Literal["ok", "warn", "fail", "skip", "wait"]
Begins = Literal["", "redis", "web root", "parts"]
"""Parts that a site lacks before its first start; parts: web process and worker."""


class DoctorFinding(NamedTuple):
    """Result of a check; `todo` is the remedy in one sentence."""

    status: Status
    detail: str
    todo: str = ""


class DoctorResult(NamedTuple):
    """The outcome of one check; `site` is empty for a check of all sites."""

    check: str
    looks_at: str
    site: str
    status: Status
    detail: str
    todo: str


@dataclass(frozen=True)
class Case:
    """The subject of a check: a configuration, and one of its sites.

    `to` is the address of the webhook, `now` the local clock (s since 1970), `not_begun` the parts
    that are missing because the site was never started (deploy/doctor/never_started.py).
    """

    settings: Settings
    name: str
    site: Site
    client: redis.Redis
    to: str
    now: Callable[[], float] = time.time
    not_begun: frozenset[Begins] = frozenset()


class DoctorCheck(NamedTuple):
    """One check. `todo` is the remedy if the check itself cannot run.

    `needs` is the part without which it fails; before the first start that is no failure. `once` if
    it concerns all sites together, `store` if it uses Redis, `online` if it sends requests.
    """

    name: str
    looks_at: str
    look: Callable[[Case], DoctorFinding]
    todo: str
    once: bool = False
    store: bool = False
    online: bool = False
    needs: Begins = ""


def ok(detail: str) -> DoctorFinding:
    """Return the finding for a check that passed."""
    return DoctorFinding("ok", detail)


def warn(detail: str, todo: str) -> DoctorFinding:
    """Return the finding for a state that works with limits, or not for long."""
    return DoctorFinding("warn", detail, todo)


def fail(detail: str, todo: str) -> DoctorFinding:
    """Return the finding for a state that does not work."""
    return DoctorFinding("fail", detail, todo)


def skip(detail: str) -> DoctorFinding:
    """Return the finding for a check that cannot be made here."""
    return DoctorFinding("skip", detail)


_NOT_YET: dict[Begins, DoctorFinding] = {
    "redis": DoctorFinding(
        "wait", "the embedded server was never started", "start it: sitemapd up"
    ),
    "web root": DoctorFinding(
        "wait", "the first publish creates the web root", "send a first event"
    ),
    "parts": DoctorFinding(
        "wait", "was never started", "start it: sitemapd up, or sitemapd run web and run worker"
    ),
}  # fmt: skip


def examine(
    cases: Iterable[Case], checks: Iterable[DoctorCheck], *, offline: bool = False
) -> Iterator[DoctorResult]:
    """Run every check that can run; an exception in a check is its own failure.

    After Redis failed to answer once, checks that use it are skipped.
    """
    cases, down = list(cases), False
    for check in checks:
        for case in cases[:1] if check.once else cases:
            finding = skip("offline")
            if check.store and down:
                finding = skip(_DOWN)
            elif not (check.online and offline):
                try:
                    finding = _look(check, case)
                except StoreDownError as error:
                    down = down or (check.store and not isinstance(error, NoWritesError))
                    finding = fail(str(error), _START)
                if finding.status == "fail" and check.needs in case.not_begun:
                    finding = _NOT_YET[check.needs]
            yield DoctorResult(
                check.name, check.looks_at, "" if check.once else case.name, *finding
            )


def _look(check: DoctorCheck, case: Case) -> DoctorFinding:
    """Return the finding; an error of another kind than StoreDownError is one."""
    try:
        return check.look(case)
    except StoreDownError:
        raise
    except SitemapdError as error:
        return fail(str(error), check.todo)
    except Exception as error:  # noqa: BLE001  # a check that fails is a finding, no traceback
        return fail(f"the check failed: {type(error).__name__}: {error}", check.todo)
