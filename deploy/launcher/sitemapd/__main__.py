"""Command `python -m sitemapd`: the same as `sitemapd`."""

from __future__ import annotations

from sitemapd import main

if __name__ == "__main__":
    main()
