"""Which workers are alive."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import redis

from shared.inbox import Inbox
from shared.store.redis import answering
from shared.store.workers import HEARTBEAT


def heard_of(client: redis.Redis, sites: Iterable[str]) -> dict[str, bool]:
    """Every worker that ever read an inbox of `sites`, and whether it speaks.

    Their names come from the consumers of the inboxes: to find the keys of their heartbeats one
    would have to walk over all keys, hundreds of thousands on a large site.
    """
    names = sorted({name for site in sites for name in Inbox(client, site).consumers()})
    names = [name for name in names if not name.startswith("cli-")]
    if not names:
        return {}
    with answering():
        found: Any = client.mget([HEARTBEAT + name for name in names])
    return {name: beat is not None for name, beat in zip(names, found, strict=True)}
