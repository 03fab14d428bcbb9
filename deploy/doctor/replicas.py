"""Check of the replicas of Redis: what a failover can lose, and what a master does without them."""

from __future__ import annotations

from typing import Any

import redis
from redis.exceptions import NoPermissionError

from deploy.doctor.runner import Case, DoctorCheck, DoctorFinding, fail, ok, warn
from shared.config import redis_address
from shared.errors import StoreError
from shared.store.client import answering
from shared.store.server_settings import masters


def look(case: Case) -> DoctorFinding:
    """Compare the replicas of each master with what the settings ask of them."""
    wanted, kind = case.settings.wait_replicas, _kind(case)
    try:
        found = [_of(master) for master in masters(case.client)]
    except StoreError as error:
        if not isinstance(error.__cause__, NoPermissionError):
            raise
        return warn("this Redis user may not see the replicas", "grant it +config|get and +info")
    replicas, least = min(each[0] for each in found), min(each[1] for each in found)
    detail = f"{len(found)} masters with {replicas} replicas or more" if len(found) > 1 else (
        f"{replicas} replicas"
    )  # fmt: skip
    if replicas < wanted:
        return fail(
            f"{detail}, wait_replicas is {wanted}: senders get 503", "add replicas, or reduce it"
        )
    if not wanted and (replicas or kind in {"sentinel", "cluster"}):
        return warn(
            f"{detail}: a failover may lose the events of its last moment",
            "set wait_replicas = 1: what was answered 202 is then on a replica",
        )
    if wanted and not least:
        return warn(
            f"{detail}; min-replicas-to-write is 0: a master that is cut off goes on publishing, "
            "until its files are written again from the state of the new one",
            f"CONFIG SET min-replicas-to-write {wanted}, and in its configuration",
        )
    return ok(f"{detail}, {wanted} of them before a 202" if wanted else f"{detail}, no failover")


def _kind(case: Case) -> str:
    url = case.settings.redis_url
    return redis_address.parse(url).kind if url else ""


def _of(master: redis.Redis) -> tuple[int, int]:
    """Return the number of replicas in step, and `min-replicas-to-write`."""
    with answering():
        info: Any = master.info("replication")
        config: Any = master.config_get("min-replicas-to-write")
    known = (info[f"slave{n}"] for n in range(int(info["connected_slaves"])))
    return sum(each["state"] == "online" for each in known), int(
        config.get("min-replicas-to-write", 0)
    )


CHECK = DoctorCheck(
    "redis replicas", "what a failover of Redis can lose", look, "see the log of Redis",
    once=True, store=True,
)  # fmt: skip
