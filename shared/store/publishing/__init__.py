"""State of publishing: leases, dirty shards, blocks, file records, holds and revisions; not the
files themselves (worker/publishing).
"""
