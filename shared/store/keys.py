"""What is kept in Redis: every key, its type, who writes it and how long it lives.

All keys of a site share the hash tag `{site}`, so that a site lives in one slot of a Redis Cluster.
Names that users choose, of sections, deliveries and engines, each stand behind a word of their own
that is nothing else's, so that no name can make one key another (RELIABILITY T36).
"""

from __future__ import annotations

from typing import NamedTuple

from shared.domain.page_record import bucket_of, field_of
from shared.sitemap.shards import Shard

GROUP = "workers"
SEEN_S = 7 * 24 * 3600
AWAKE_MS = 10_000
BURST_S = 120
"""How many seconds of a site's rate may come at once: 60,000 events at the default of 500."""
LEASE_MS = 10_000
RECENT = 20_000
"""Entries of `recent` and `revisions` at most; store/retention.py cuts them by their size."""
REFUSED = 1_000
"""Entries of `refused`, a stream of its own: whoever attacks must not push out what was decided."""

EVERYWHERE = "{_sitemapd}:"
"""Begins the keys that belong to no site: the name of a site has no underscore."""

PERMANENT = (
    "inbox",  # stream, group `workers`: accepted events; accept.lua adds, apply.lua removes
    "loc:",  # hash per bucket: digest -> Located; apply.lua, purge_tombstones.lua
    "id:",  # hash per bucket: owner -> Claim; apply.lua, purge_tombstones.lua
    "tombs",  # zset: digest or `i` + owner -> when it may be forgotten (ms); apply.lua,
    # purge_tombstones.lua
    "counters",  # hash: `shards`, `urls`, `clusters`; apply.lua. `publishes`; commit_publish.lua.
    # `run`, `form`, `sections`, `numbering`; store/sections.py. `reconciled` (ms);
    # store/operations/resync_requests.py
    "sections",  # hash: name -> number; store/sections.py
    "tails",  # hash: section -> shard, block, count, bytes: where new pages go; apply.lua
    "section:",  # of each section, `section:<name>:` and then
    # `shards` hash: number -> ShardState, pending patches included; apply.lua
    # `pending:<shard>` hash: digest, block -> block, op, fragment: not published; apply.lua
    # `taking:<shard>` hash: the same, moved aside by a publisher at work; begin_publish.lua,
    # commit_publish.lua
    # `blocks:<shard>` hash: number -> Block; commit_publish.lua
    # `files` hash: number -> PublishedFile, as on disk; commit_publish.lua
    "index:",  # hash per index file: ordinal -> `<sitemap>` line; commit_publish.lua
    "dirty",  # zset: shard -> since when it has unpublished patches (ms); apply.lua,
    # commit_publish.lua
    "held",  # hash: shard -> since (s), pages it would list, pages before; commit_publish.lua (T32)
    "quarantine",  # hash: shard, or `*` for all -> since (s), kind, reason, remedy: what is not
    # published; store/publishing/quarantine.py, commit_publish.lua
    "retired",  # zset: file name of an earlier configuration -> when it goes (s);
    # store/publishing/file_shape.py
    "shape",  # hash: the settings by which the files were written; store/publishing/file_shape.py
    "allowed",  # hash: what the shrink guard lets pass, cleared when published; commit_publish.lua.
    # `moved <shard>`: pages listed elsewhere now; apply.lua. `confirmed <shard>`;
    # store/publishing/shrink_holds.py
    "expiry",  # zset: loc, or `news ` + loc -> when the entry must be looked at (ms); apply.lua
    "coming",  # hash: `news ` + loc -> the news entry to list when `expiry` says (expiry.schedule);
    # apply.lua
    "cluster:",  # hash per translation group: loc -> Member, `` -> a number that grows with each
    # change, from `counters` `clusters`; apply.lua
    "feed",  # zset: loc -> when the page changed (ms), the newest; apply.lua. And
    "feed:items",  # hash: loc -> Item; apply.lua. Both go when feeds are off;
    # worker/publishing/feeds.py
    "resync",  # zset: scope -> when somebody asked last to have it compared with its source (ms);
    # apply.lua, close_resyncs.lua
    "dead",  # stream: events that failed five times; dead_letter.lua, requeue_dead.lua
    "recent",  # stream: what happened lately, for people (store/operations/event_log.py);
    # apply.lua, commit_publish.lua
    "refused",  # stream: what was refused at the door, REFUSED entries; webhook/rejection_log.py
    "revisions",  # stream: which lines each publish changed (store/publishing/revisions.py);
    # commit_publish.lua
    "stats",  # hash: what was counted (store/counting/counters.py); the scripts,
    # webhook/rejection_log.py, store/counting/counter_buffer.py
    "counts",  # hash, of EVERYWHERE: what was counted and belongs to no site;
    # store/counting/counter_buffer.py
    "paused",  # hash: queue -> since (ms), by whom; store/operations/queues.py
    "purges",  # zset: name of a purge -> when (ms); purge.lua
    "notify:",  # of each engine that is told of changes, all but the first by
    # store/notify/notification_queue.py:
    # `notify:<engine>` zset: loc -> when it may be told (ms); commit_publish.lua.
    # `<engine>:sending` zset: the same, in the request under way. `<engine>:tries` hash: loc -> how
    # often in vain
    "notices",  # stream: the fate of the latest requests to engines;
    # store/notify/notification_queue.py
    "notices:breakers",  # hash: engine and endpoint -> Breaker; store/notify/notification_queue.py
    "notices:dead",  # stream: what was given up; store/notify/delivery_lease.py,
    # store/notify/notification_queue.py
    "websub",  # hash: feed -> Subscription; store/notify/subscriptions.py
    "audit",  # stream, of EVERYWHERE: who did what, the newest 10,000;
    # store/operations/audit_log.py
    "checks",  # hash: `report`, `began`, `compared`, `seen` of the last; store/operations/checks.py
    "checks:asked",  # zset: who wants a check -> since when (ms); store/operations/checks.py,
    # close_resyncs.lua
)
"""Keys that live for ever, without the prefix: whole names, and beginnings that end in a colon.

With a TTL: `seen:`, `awake`, `rate`, `lease`, `reconcile`, `resync-alarm`, `crawl`, `told:`,
`spent:`, `telling:`, `checking` and `checking:progress`, `import:` (an import that was cut off),
`pulse:` (counts of one minute) and `purged:` (what a purge took out); of EVERYWHERE `session:`,
`once:`, `tries:`, `doctor`, and of store/operations/worker_registry.py `worker:`, `workers`,
`wanted:`, of store/operations/loop_health.py `loops:`.

What begins with `{site}~` is a restore under way; the next one removes what a killed one left.
"""


class Keys:
    """The names of one site's keys."""

    def __init__(self, site: str) -> None:
        self.prefix = f"{{{site}}}:"
        self.inbox = self.prefix + "inbox"
        self.awake = self.prefix + "awake"
        self.rate = self.prefix + "rate"
        self.lease = self.prefix + "lease"
        self.tombs = self.prefix + "tombs"
        self.counters = self.prefix + "counters"
        self.sections = self.prefix + "sections"
        self.tails = self.prefix + "tails"
        self.dirty = self.prefix + "dirty"
        self.held = self.prefix + "held"
        self.quarantine = self.prefix + "quarantine"
        self.retired = self.prefix + "retired"
        self.shape = self.prefix + "shape"
        self.expiry = self.prefix + "expiry"
        self.coming = self.prefix + "coming"
        self.resync = self.prefix + "resync"
        self.resync_alarm = self.prefix + "resync-alarm"
        self.reconcile = self.prefix + "reconcile"
        self.allowed = self.prefix + "allowed"
        self.feed = self.prefix + "feed"
        self.feed_items = self.prefix + "feed:items"
        self.dead = self.prefix + "dead"
        self.recent = self.prefix + "recent"
        self.refused = self.prefix + "refused"
        self.revisions = self.prefix + "revisions"
        self.stats = self.prefix + "stats"
        self.paused = self.prefix + "paused"
        self.purges = self.prefix + "purges"
        self.notices = self.prefix + "notices"
        self.notice_dead = self.prefix + "notices:dead"
        self.breakers = self.prefix + "notices:breakers"
        self.crawl = self.prefix + "crawl"
        self.checks = self.prefix + "checks"
        self.checks_asked = self.prefix + "checks:asked"
        self.checking = self.prefix + "checking"
        self.checking_progress = self.prefix + "checking:progress"
        self.websub = self.prefix + "websub"

    def seen(self, ident: str) -> str:
        """Remembers one delivery id."""
        return f"{self.prefix}seen:{ident}"

    def pulse(self, minute: int) -> str:
        """Counts of one minute since 1970."""
        return f"{self.prefix}pulse:{minute}"

    def purged(self, name: str) -> str:
        """What one purge took out."""
        return f"{self.prefix}purged:{name}"

    def notify(self, engine: str) -> str:
        """The locs of which `engine` is to be told."""
        return f"{self.prefix}notify:{engine}"

    def sending(self, engine: str) -> str:
        """The locs in the request to `engine` that is under way."""
        return f"{self.notify(engine)}:sending"

    def tries(self, engine: str) -> str:
        """How often `engine` was told of locs in vain."""
        return f"{self.notify(engine)}:tries"

    def told(self, engine: str) -> str:
        """The locs of which `engine` was told lately."""
        return f"{self.prefix}told:{engine}"

    def spent(self, engine: str, day: str) -> str:
        """How much of its budget `engine` has used up on `day`."""
        return f"{self.prefix}spent:{engine}:{day}"

    def telling(self, engine: str) -> str:
        """Who tells `engine` just now."""
        return f"{self.prefix}telling:{engine}"

    def loc(self, digest: bytes) -> str:
        """The bucket that holds the page of `digest`."""
        return f"{self.prefix}loc:{bucket_of(digest):x}"

    def id(self, owner: bytes) -> str:
        """The bucket that holds the claim of `owner`."""
        return f"{self.prefix}id:{bucket_of(owner):x}"

    def cluster(self, group: bytes) -> str:
        """The members of a translation group."""
        return f"{self.prefix}cluster:{group.hex()}"

    def importing(self, source: str) -> str:
        """How far the import from `source`, a digest, has come."""
        return f"{self.prefix}import:{source}"

    def shards(self, section: str) -> str:
        """The states of a section's shards."""
        return f"{self.prefix}section:{section}:shards"

    def files(self, section: str) -> str:
        """The published files of a section."""
        return f"{self.prefix}section:{section}:files"

    def pending(self, shard: Shard) -> str:
        """Patches to `shard` that no publisher has seen."""
        return f"{self.prefix}section:{shard.section}:pending:{shard.number}"

    def taking(self, shard: Shard) -> str:
        """Patches to `shard` that a publisher is merging."""
        return f"{self.prefix}section:{shard.section}:taking:{shard.number}"

    def blocks(self, shard: Shard) -> str:
        """The merged content of `shard`."""
        return f"{self.prefix}section:{shard.section}:blocks:{shard.number}"

    def index(self, page: int) -> str:
        """The lines of one index file."""
        return f"{self.prefix}index:{page}"


def field(digest: bytes) -> bytes:
    """The field of a page or claim in its bucket."""
    return field_of(digest)


def moved_field(shard: Shard) -> str:
    """Where `allowed` counts the pages of `shard` that other files list now."""
    return f"moved {shard}"


def confirmed_field(shard: Shard) -> str:
    """Where `allowed` keeps down to how many pages `shard` may shrink."""
    return f"confirmed {shard}"


class PublishedFile(NamedTuple):
    """One shard file as it was last written.

    `generation` is the shard's when it was read, `lastmod` the file's mtime in whole seconds
    (PROTOCOL M7), `urls` its pages, `size` its bytes before compression. `peak` is the most pages
    it listed since `peak_since` (s since 1970), for the shrink guard; records of before it existed
    lack both.
    """

    generation: int
    lastmod: int
    urls: int
    size: int
    peak: int = 0
    peak_since: int = 0

    def pack(self) -> str:
        """The form in which it is stored."""
        return " ".join(map(str, self))

    @classmethod
    def unpack(cls, stored: bytes) -> PublishedFile:
        """The file of what `pack` gave."""
        return cls(*map(int, stored.split(b" ")))
