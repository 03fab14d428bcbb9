"""The command line and all that installs, starts and runs sitemapd. No rules of events, pages or
files.
"""
