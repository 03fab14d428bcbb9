"""What is kept for people may take so much room and no more: `recent` and `revisions`."""

from __future__ import annotations

from typing import Any

import redis

from shared.store.client import answering
from shared.store.keys import Keys


def trim(client: redis.Redis, site: str, most: int) -> int:
    """Let the oldest of each go where it takes more than `most` bytes; how many entries went.

    Their sizes are taken for equal, so it may need to be asked again: a sweep does.
    """
    keys, gone = Keys(site), 0
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
