"""Tolerant parsing of XML sitemaps and feeds, entry by entry. Fetching and other formats belong to
the parent packages.
"""
