"""The commands of `sitemapd`, one module for each group; deploy/cli.py assembles them."""
