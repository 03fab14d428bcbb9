"""More than one Redis server: a master that sentinels know, and a cluster.

Nothing here is used for an address of one server. Scripts and their callers know no difference.
"""
