"""Flaws in the state of a site; each kind is a check of that name."""

from __future__ import annotations

from typing import NamedTuple

from shared.sitemap.shards import Shard
from shared.store.operations.checks import OF_STATE

(
    LOST_LINE, UNKNOWN_LINE, OTHER_LINE, WRONG_COUNT, WRONG_FILE, WRONG_CLAIM, NOT_RECIPROCAL,
    NOT_SCHEDULED, NOT_QUEUED, WRONG_FEED,
) = KINDS = OF_STATE  # fmt: skip


class Flaw(NamedTuple):
    """One disagreement: its `kind`, `where` for administrators (a loc or a file), and `detail`.

    The rest is for the repair: `digest` of the page, `shard` that would list it, `owner` or `group`
    of `pages` that names it, `key` that expires at `when` (ms since 1970).
    """

    kind: str
    where: str
    detail: str
    shard: Shard | None = None
    digest: bytes = b""
    owner: bytes = b""
    group: bytes = b""
    pages: tuple[bytes, ...] = ()
    key: str = ""
    when: int = 0
