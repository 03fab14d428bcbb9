"""State of publishing: leases, dirty shards, blocks, file records, shrink holds, quarantine and
revisions; not the files themselves (worker/publishing).
"""
