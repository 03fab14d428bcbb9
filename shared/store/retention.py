"""Memory limit of the streams `recent` and `revisions`."""

from __future__ import annotations

from typing import Any

import redis

from shared.store.client import answering
from shared.store.keys import keys_of


def trim(client: redis.Redis, site: str, most: int) -> int:
    """Trim the oldest entries of each stream that uses more than `most` bytes; return their number.

    Entries are assumed to be of equal size, so one call may not suffice; each sweep calls it again.
    """
    keys, gone = keys_of(site), 0
    streams = keys.recent, keys.revisions
    with answering():
        pipe = client.pipeline(transaction=False)
        for stream in streams:
            pipe.memory_usage(stream)
        for stream, used in zip(streams, pipe.execute(), strict=True):
            if used and used > most:
                count: Any = client.xlen(stream)
                gone += int(client.xtrim(stream, maxlen=count * most // used, approximate=True))
    return gone
