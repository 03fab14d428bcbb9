"""Names of all Redis keys: type, writers and lifetime of each.

All keys of a site share the hash tag `{site}`, so that they live in one slot of a Redis Cluster.
Names that users choose (sections, deliveries, engines) each follow a fixed word of their own, so
that no such name can make one key equal to another (RELIABILITY T36).
"""

from __future__ import annotations

from functools import lru_cache

from shared.domain.page_record import bucket_of, field_of
from shared.sitemap.shards import Shard

GROUP = "workers"
SEEN_S = 7 * 24 * 3600
AWAKE_MS = 10_000
BURST_S = 120
"""Seconds of a site's rate that may arrive at once: 60,000 events at the default of 500 a second.
"""
LEASE_MS = 10_000
RECENT = 20_000
"""Maximum number of entries of `recent` and `revisions`; store/retention.py trims both by size."""
REFUSED = 1_000
"""Maximum number of entries of `refused`: a stream of its own, so attacks cannot evict decisions.
"""

EVERYWHERE = "{_sitemapd}:"
"""Prefix of the keys that belong to no site: the name of a site has no underscore."""

PERMANENT = (
    "inbox",  # stream, group `workers`: accepted events; accept.lua adds, apply.lua removes
    "loc:",  # hash per bucket: digest -> PageRecord; apply.lua, purge_tombstones.lua
    "id:",  # hash per bucket: owner -> Claim; apply.lua, purge_tombstones.lua
    "tombs",  # zset: digest or `i` + owner -> when the tombstone may be purged (ms); apply.lua,
    # purge_tombstones.lua
    "counters",  # hash: `shards`, `urls`, `clusters`; apply.lua. `publishes`, `publisher` (token of
    # the last commit); commit_publish.lua.
    # `run`, `form`, `sections`, `numbering`; store/sections.py. `form`, `back`, `owners`;
    # store/layouts/version.py, begin_migration.lua, end_migration.lua. `reconciled` (ms);
    # store/operations/resync_requests.py
    "sections",  # hash: name -> number; store/sections.py
    "tails",  # hash: section -> shard, block, count, bytes: the place of new pages; apply.lua
    "section:",  # of each section, `section:<name>:` followed by
    # `shards` hash: number -> ShardState, pending patches included; apply.lua
    # `pending:<shard>` hash: digest, block -> block, op, fragment: pending patches; apply.lua
    # `taking:<shard>` hash: the same, taken by a running publish pass; begin_publish.lua,
    # commit_publish.lua
    # `blocks:<shard>` hash: number -> Block; commit_publish.lua
    # `files` hash: number -> PublishedFile, as on disk; commit_publish.lua
    "index:",  # hash per index file: ordinal -> `<sitemap>` line; commit_publish.lua
    "dirty",  # zset: shard -> time of its oldest unpublished change (ms); apply.lua,
    # commit_publish.lua
    "held",  # hash: shard -> since (s), pages it would list, pages before; commit_publish.lua (T32)
    "quarantine",  # hash: shard, or `*` for the site -> since (s), kind, reason, remedy;
    # store/publishing/quarantine.py, commit_publish.lua
    "retired",  # zset: file name of an earlier configuration -> when it is removed (s);
    # store/publishing/file_shape.py
    "shape",  # hash: the settings by which the files were written; store/publishing/file_shape.py
    "versions",  # zset, of a site with several targets: shard, or `index:` + number -> publish that
    # changed its file last; commit_publish.lua
    "targets",  # hash: target -> publishes that it has, time of its last pass (ms); target
    # `failing` -> since (ms), reason; target `behind` -> since (ms); commit_publish.lua,
    # store/targets/target_state.py
    "target:",  # hash per target: shard or index as in `versions` that may differ from what this
    # state holds; the same
    "allowed",  # hash: what the shrink guard lets pass, cleared when published; commit_publish.lua.
    # `moved <shard>`: pages listed elsewhere now; apply.lua. `confirmed <shard>`;
    # store/publishing/shrink_holds.py
    "expiry",  # zset: loc, `news ` + loc or `at ` + loc -> when the entry is due for expiry, or the
    # deferred event for its decision (ms); apply.lua
    "coming",  # hash: `news ` + loc -> news entry listed at its time in `expiry` (expiry.schedule),
    # `at ` + loc -> event decided again then (domain/deferral.py); apply.lua
    "cluster:",  # hash per translation group: loc -> GroupMember, `` -> number of its last change,
    # from `counters` `clusters`; apply.lua
    "feed",  # zset: loc -> when the page changed (ms), the newest; apply.lua
    "feed:items",  # hash: loc -> FeedItem; apply.lua. worker/publishing/feeds.py deletes this and
    # `feed` when feeds are off
    "resync",  # zset: scope -> time of its last resync request (ms); apply.lua, close_resyncs.lua
    "dead",  # stream: events that failed five times; dead_letter.lua, requeue_dead.lua
    "recent",  # stream: event log (store/operations/event_log.py); apply.lua, commit_publish.lua
    "refused",  # stream: rejected deliveries, REFUSED entries; webhook/rejection_log.py
    "revisions",  # stream: lines changed by each publish (store/publishing/revisions.py);
    # commit_publish.lua
    "stats",  # hash: counters (store/counting/counters.py); the scripts,
    # webhook/rejection_log.py, store/counting/counter_buffer.py
    "counts",  # hash, of EVERYWHERE: counters that belong to no site;
    # store/counting/counter_buffer.py
    "paused",  # hash: queue -> since (ms), by whom; store/operations/queues.py
    "purges",  # zset: name of a purge -> when (ms); purge.lua
    "notify:",  # of each notified engine; all but the first by store/notify/delivery_lease.py:
    # `notify:<engine>` zset: loc -> when its notification is due (ms); commit_publish.lua,
    # store/notify/notification_queue.py.
    # `<engine>:sending` zset: the same, in the current request. `<engine>:tries` hash: loc ->
    # failed attempts
    "notices",  # stream: outcomes of the latest requests to engines;
    # store/notify/notification_queue.py
    "notices:breakers",  # hash: engine and endpoint -> Breaker; store/notify/notification_queue.py
    "notices:dead",  # stream: dead notifications; store/notify/delivery_lease.py,
    # store/notify/notification_queue.py
    "websub",  # hash: feed -> Subscription; store/notify/subscriptions.py
    "looks",  # hash: LookState; this and what follows it: store/looks/look_keys.py
    "looks:",
    "audit",  # stream, of EVERYWHERE: audit log, the newest 10,000; store/operations/audit_log.py
    "alerts",  # hash, of EVERYWHERE: condition and site -> Alert; store/operations/alert_store.py
    "alerts:messages",  # hash, of EVERYWHERE: id -> message, channels that lack it; the same
    "alerts:channels",  # hash, of EVERYWHERE: channel -> ChannelHealth; the same
    "checks",  # hash: `report`, `began`, `compared`, `seen` of the last; store/operations/checks.py
    "checks:asked",  # zset: requester of a check -> since (ms); store/operations/checks.py,
    # close_resyncs.lua
)
"""Keys without a TTL, without the prefix: whole names, and prefixes that end in a colon.

With a TTL: `seen:`, `awake`, `rate`, `lease`, `migrating`, `reconcile`, `resync-alarm`, `crawl`,
`told:`, `spent:`, `telling:`, `following:`, `checking`, `checking:progress`, `import:` (an
interrupted import), `pulse:` (counts of one minute), `hour:` (the same of one hour), `accepted:`
(events of each hour of a week) and `purged:` (events removed by a purge); of EVERYWHERE `session:`,
`once:`, `tries:`, `doctor`, `looking:`, `robots:`, of store/operations/alert_store.py `alerting`
and `alerts:sent`, of store/operations/worker_registry.py `worker:`, `workers`, `wanted:`, of
store/operations/loop_health.py `loops:`, and of store/operations/config_reports.py `configuration`.

`absent` never exists: servers/cluster.py names it with each script, so that none runs half-way
while its slot moves.

Keys that begin with `{site}~` belong to a running restore; the next restore removes those of a
killed one.
"""


class _Name:
    """Name of one key, made when it is first asked for: most sites of many need few of them."""

    def __init__(self, suffix: str) -> None:
        self._suffix = suffix

    def __set_name__(self, owner: type[Keys], name: str) -> None:
        self._name = name

    def __get__(self, keys: Keys, owner: type[Keys]) -> str:
        made = keys.__dict__[self._name] = keys.prefix + self._suffix
        return made


class Keys:
    """Key names of one site."""

    inbox = _Name("inbox")
    awake = _Name("awake")
    rate = _Name("rate")
    lease = _Name("lease")
    tombs = _Name("tombs")
    counters = _Name("counters")
    sections = _Name("sections")
    tails = _Name("tails")
    dirty = _Name("dirty")
    held = _Name("held")
    quarantine = _Name("quarantine")
    retired = _Name("retired")
    shape = _Name("shape")
    versions = _Name("versions")
    targets = _Name("targets")
    expiry = _Name("expiry")
    coming = _Name("coming")
    resync = _Name("resync")
    resync_alarm = _Name("resync-alarm")
    reconcile = _Name("reconcile")
    allowed = _Name("allowed")
    feed = _Name("feed")
    feed_items = _Name("feed:items")
    dead = _Name("dead")
    recent = _Name("recent")
    refused = _Name("refused")
    revisions = _Name("revisions")
    stats = _Name("stats")
    paused = _Name("paused")
    purges = _Name("purges")
    notices = _Name("notices")
    notice_dead = _Name("notices:dead")
    breakers = _Name("notices:breakers")
    crawl = _Name("crawl")
    checks = _Name("checks")
    check_requests = _Name("checks:asked")
    checking = _Name("checking")
    checking_progress = _Name("checking:progress")
    websub = _Name("websub")
    migrating = _Name("migrating")

    def __init__(self, site: str) -> None:
        self.prefix = f"{{{site}}}:"

    def seen(self, ident: str) -> str:
        """Mark of one delivery id as received."""
        return f"{self.prefix}seen:{ident}"

    def pulse(self, minute: int) -> str:
        """Counts of one minute since 1970."""
        return f"{self.prefix}pulse:{minute}"

    def hour(self, hour: int) -> str:
        """Counts of one hour since 1970."""
        return f"{self.prefix}hour:{hour}"

    def accepted(self, week: int) -> str:
        """Events accepted in each hour of one week since 1970."""
        return f"{self.prefix}accepted:{week}"

    def purged(self, name: str) -> str:
        """Events removed by one purge."""
        return f"{self.prefix}purged:{name}"

    def notify(self, engine: str) -> str:
        """Locs of which `engine` is to be notified."""
        return f"{self.prefix}notify:{engine}"

    def sending(self, engine: str) -> str:
        """Locs in the current request to `engine`."""
        return f"{self.notify(engine)}:sending"

    def tries(self, engine: str) -> str:
        """Failed attempts to notify `engine`, by loc."""
        return f"{self.notify(engine)}:tries"

    def notified(self, engine: str) -> str:
        """Locs of which `engine` was notified recently."""
        return f"{self.prefix}told:{engine}"

    def spent(self, engine: str, day: str) -> str:
        """Part of the budget of `engine` spent on `day` (UTC, YYYYMMDD)."""
        return f"{self.prefix}spent:{engine}:{day}"

    def notify_lease(self, engine: str) -> str:
        """Delivery lease: the right to notify `engine`."""
        return f"{self.prefix}telling:{engine}"

    def target(self, name: str) -> str:
        """Files of one target that may differ from the state."""
        return f"{self.prefix}target:{name}"

    def target_lease(self, name: str) -> str:
        """Lease of one target: the right to write it."""
        return f"{self.prefix}following:{name}"

    def loc(self, digest: bytes) -> str:
        """Bucket that holds the page record of `digest`."""
        return f"{self.prefix}loc:{bucket_of(digest):x}"

    def id(self, owner: bytes) -> str:
        """Bucket that holds the claim of `owner`."""
        return f"{self.prefix}id:{bucket_of(owner):x}"

    def cluster(self, group: bytes) -> str:
        """Members of a translation group."""
        return f"{self.prefix}cluster:{group.hex()}"

    def importing(self, source: str) -> str:
        """Progress of the import from `source`, a digest."""
        return f"{self.prefix}import:{source}"

    def shards(self, section: str) -> str:
        """States of a section's shards."""
        return f"{self.prefix}section:{section}:shards"

    def files(self, section: str) -> str:
        """Published files of a section."""
        return f"{self.prefix}section:{section}:files"

    def pending(self, shard: Shard) -> str:
        """Patches to `shard` that no publisher has taken."""
        return f"{self.prefix}section:{shard.section}:pending:{shard.number}"

    def taking(self, shard: Shard) -> str:
        """Patches to `shard` that a publisher has taken and not committed."""
        return f"{self.prefix}section:{shard.section}:taking:{shard.number}"

    def blocks(self, shard: Shard) -> str:
        """Merged content of `shard`."""
        return f"{self.prefix}section:{shard.section}:blocks:{shard.number}"

    def index(self, page: int) -> str:
        """Lines of one index file."""
        return f"{self.prefix}index:{page}"


keys_of = lru_cache(16_384)(Keys)
"""Return the key names of a site, made once: all parts of a site share them."""


def field(digest: bytes) -> bytes:
    """Return the field of a page record or claim in its bucket."""
    return field_of(digest)


def confirmed_field(shard: Shard) -> str:
    """Return the field of `allowed` with the number of pages to which `shard` may shrink."""
    return f"confirmed {shard}"
