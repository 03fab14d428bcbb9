"""What can disagree in the state of a site, and where: each kind is a check with that name."""

from __future__ import annotations

from typing import NamedTuple

from shared.shards import Shard

LOST_LINE = "lost-line"
UNKNOWN_LINE = "unknown-line"
OTHER_LINE = "other-line"
WRONG_COUNT = "wrong-count"
WRONG_FILE = "wrong-file"
WRONG_CLAIM = "wrong-claim"
NOT_RECIPROCAL = "not-reciprocal"
NOT_SCHEDULED = "not-scheduled"
NOT_QUEUED = "not-queued"
WRONG_FEED = "wrong-feed"

KINDS = (
    LOST_LINE, UNKNOWN_LINE, OTHER_LINE, WRONG_COUNT, WRONG_FILE, WRONG_CLAIM, NOT_RECIPROCAL,
    NOT_SCHEDULED, NOT_QUEUED, WRONG_FEED,
)  # fmt: skip


class Flaw(NamedTuple):
    """One disagreement: its `kind`, `where` for people (a loc or a file), what is the matter.

    The rest is for whoever repairs it: `digest` of the page, `shard` that would list it, `owner` or
    `group` of `pages` that names it, `key` that is to be looked at `when` (ms since 1970).
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
