"""The commands of `sitemapd`, one module for each group; deploy/cli/program.py assembles them."""
