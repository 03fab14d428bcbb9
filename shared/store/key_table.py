"""Table of all Redis keys of a site: type, writers and lifetime of each (names: store/keys.py)."""

from __future__ import annotations

PERMANENT = (
    "inbox",  # stream, group `workers`: accepted events; accept.lua adds, apply.lua removes
    "loc:",  # hash per bucket: digest -> PageRecord; apply.lua, purge_tombstones.lua
    "id:",  # hash per bucket: owner -> Claim; apply.lua, purge_tombstones.lua
    "tombs",  # zset: digest or `i` + owner -> when the tombstone may be purged (ms); apply.lua,
    # purge_tombstones.lua
    "counters",  # hash: `shards`, `urls`, `clusters`, `titles` (1: there are any); apply.lua.
    # `publishes`, `publisher` (token of the last commit); commit_publish.lua.
    # `run`, `form`, `sections`, `numbering`; store/sections.py. `form`, `back`, `owners`;
    # store/layouts/version.py, begin_migration.lua, end_migration.lua. `shared` (partners);
    # worker/ingest/shared_groups.py, store/pages/amendments.py. `reconciled` (ms);
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
    "expiry",  # zset: loc, `news ` + loc, `at ` + loc or `group ` + digest -> when the entry is due
    # for expiry, the deferred event for its decision, the group for partners (ms); apply.lua,
    # settle_group.lua
    "coming",  # hash: `news ` + loc -> news entry listed at its time in `expiry` (expiry.schedule),
    # `at ` + loc -> event decided again then (domain/deferral.py); apply.lua
    "cluster:",  # hash per translation group: loc -> GroupMember, `` -> number of its last change,
    # from `counters` `clusters`; apply.lua
    "feed",  # zset: loc -> when the page changed (ms), the newest; apply.lua
    "feed:items",  # hash: loc -> FeedItem; apply.lua. outputs/feeds.py deletes both with feeds off
    "titles:",  # hash per bucket, of a site with an HTML sitemap: digest -> title; apply.lua
    "changes",  # list: published changes, the newest (sitemap/change_list.py); change_log.lua
    "changes:since",  # string: time from which `changes` has all (s); change_log.lua
    "hosts",  # hash: site of an index of several hosts -> HostRecord; ``: what was last written;
    # store/publishing/cross_submission.py
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
    "readback",  # hash: state of the reading, by engine; store/readback/reading_state.py
    "readback:",  # pages that are followed and answers about them; store/readback/page_chains.py
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
`crawl:pages`, `reading-back`, `submitting`, `told:`, `spent:`, `telling:`, `following:`,
`checking`, `checking:progress`, `import:` (an interrupted import), `pulse:` (counts of one minute),
`hour:` (the same of one hour), `accepted:` (events of each hour of a week) and `purged:` (events
removed by a purge); of EVERYWHERE `session:`, `once:`, `tries:`, `doctor`, `looking:`, `robots:`,
of store/operations/alert_store.py `alerting` and `alerts:sent`, of
store/operations/worker_registry.py `worker:`, `workers`, `wanted:`, of
store/operations/loop_health.py `loops:`, and of store/operations/config_reports.py `configuration`.

`absent` never exists: servers/cluster.py names it with each script, so that none runs half-way
while its slot moves.

Keys that begin with `{site}~` belong to a running restore; the next restore removes those of a
killed one.
"""
