"""Crawl of a site, the last resort where nothing lists its pages, by Scrapy (the extra `crawl`).

Scrapy runs in a process of its own: its reactor cannot be started twice in one. The process writes
one line for each page, and stops on SIGTERM so that it can be resumed (docs.scrapy.org, Jobs).
"""
