"""What events and time mean for the pages of a site, as pure decisions; no Redis, no configuration,
no files.
"""
