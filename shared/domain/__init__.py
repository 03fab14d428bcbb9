"""The meaning of events and of time for the pages of a site, as pure decisions; no Redis, no
configuration, no files.
"""
