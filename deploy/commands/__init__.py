"""The commands of `sitemapd`, a module each; deploy/cli.py puts them together."""
