"""Readers of CMSes by their interfaces: one module each, named like the kind of the source.

Each has `read(address, access)`, which yields the public pages with the ids and addresses that the
CMS's events have (shared/cms), and reads its collections by collection_parts.entries.
"""
