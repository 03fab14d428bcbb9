"""Tolerant parsing of XML sitemaps and feeds, entry by entry; no fetching and no other format."""
