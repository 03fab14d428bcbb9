"""The command line and all that installs, starts and runs sitemapd; no rule of events, pages or
files.
"""
