"""Reads back from search engines which sitemaps they read, and which published pages they know.

Requests are those of a guest: few, spread, within a daily budget. The credentials and the meaning
of answers are those of worker/notify/engines; nothing here tells an engine anything.
"""
