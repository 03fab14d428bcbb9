"""Names of all Redis keys; store/key_table.py has the type, writers and lifetime of each.

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
    changes = _Name("changes")
    changes_since = _Name("changes:since")
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
    hosts = _Name("hosts")
    hosts_lease = _Name("submitting")
    readback = _Name("readback")
    readback_lease = _Name("reading-back")
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

    def followed(self, name: str) -> str:
        """One key of the pages that are followed (store/readback/page_chains.py)."""
        return f"{self.prefix}readback:{name}"

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
        """Pending patches to `shard`, which no publisher has taken."""
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
