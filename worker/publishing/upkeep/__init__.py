"""Upkeep of the files of a site without events: compaction, archiving, the hourly check of news."""
