"""Backups: a snapshot taken, kept in a file, and put back (`sitemapd backup`, `restore`)."""
