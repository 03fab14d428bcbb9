"""The domain of sitemapd and its state: what a page, a shard and an event are.

Knows no web framework and no task queue.
"""
