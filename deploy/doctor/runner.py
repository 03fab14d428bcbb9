"""The frame of `sitemapd doctor`: what a check is, what it finds; none spoils the others."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

import redis

from shared.config.settings import Settings
from shared.config.site import Site
from shared.errors import SitemapdError, StoreDownError

_DOWN = "Redis does not answer"

Status = Literal["ok", "warn", "fail", "skip", "wait"]
Begins = Literal["", "redis", "web root", "parts"]
"""What a site lacks before it is started for the first time; parts: web process and worker."""


class DoctorFinding(NamedTuple):
    """What a check found: `todo` is one sentence for whoever has to mend it."""

    status: Status
    detail: str
    todo: str = ""


class DoctorResult(NamedTuple):
    """One check as it came out; `site` is empty where it is about all of them."""

    check: str
    looks_at: str
    site: str
    status: Status
    detail: str
    todo: str


@dataclass(frozen=True)
class Case:
    """What is examined: a configuration, and one of its sites.

    `to` is the address of the webhook, `now` the clock here (s since 1970), `not_begun` what is not
    there yet because the site was never started (deploy/doctor/never_started.py).
    """

    settings: Settings
    name: str
    site: Site
    client: redis.Redis
    to: str
    now: Callable[[], float] = time.time
    not_begun: frozenset[Begins] = frozenset()


class DoctorCheck(NamedTuple):
    """One check. `todo` is what to do when it cannot even be made.

    `needs` is what it finds missing before the site was ever started, which is no failure then.
    `once` if it is about all sites together, `store` if it asks Redis, `online` if it goes out.
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
    """All is well."""
    return DoctorFinding("ok", detail)


def warn(detail: str, todo: str) -> DoctorFinding:
    """It works, but not as it should or not for long."""
    return DoctorFinding("warn", detail, todo)


def fail(detail: str, todo: str) -> DoctorFinding:
    """It does not work."""
    return DoctorFinding("fail", detail, todo)


def skip(detail: str) -> DoctorFinding:
    """It cannot be known here."""
    return DoctorFinding("skip", detail)


_NOT_YET: dict[Begins, DoctorFinding] = {
    "redis": DoctorFinding(
        "wait", "the embedded server was never started", "start it: sitemapd up"
    ),
    "web root": DoctorFinding("wait", "the first publish makes the web root", "send a first event"),
    "parts": DoctorFinding(
        "wait", "was never started", "start it: sitemapd up, or sitemapd run web and run worker"
    ),
}  # fmt: skip


def examine(
    cases: Iterable[Case], checks: Iterable[DoctorCheck], *, offline: bool = False
) -> Iterator[DoctorResult]:
    """Make every check that can be made; what one raises is its own failure.

    Once Redis did not answer, nothing else waits for it.
    """
    cases, down = list(cases), False
    for check in checks:
        for case in cases[:1] if check.once else cases:
            finding = skip("offline")
            if check.store and down:
                finding = skip(_DOWN)
            elif not (check.online and offline):
                finding = _look(check, case)
                failed = finding.detail
                if finding.status == "fail" and check.needs in case.not_begun:
                    finding = _NOT_YET[check.needs]
                down = down or (check.store and failed.startswith(_DOWN))
            yield DoctorResult(
                check.name, check.looks_at, "" if check.once else case.name, *finding
            )


def _look(check: DoctorCheck, case: Case) -> DoctorFinding:
    try:
        return check.look(case)
    except StoreDownError as error:
        return fail(str(error), "start Redis, or correct redis_url in sitemapd.toml")
    except SitemapdError as error:
        return fail(str(error), check.todo)
    except Exception as error:  # noqa: BLE001  # a check that fails is a finding, no traceback
        return fail(f"the check failed: {type(error).__name__}: {error}", check.todo)
