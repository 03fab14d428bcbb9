"""The sitemap protocol as pure functions: URLs, dates, entries, shards, indexes, feeds and
robots.txt; no events, no state, no files.
"""
