"""Other ways to keep a sitemap, each with one changed URL: all files anew, or one page rendered.

Yoast SEO is missing: neither npm, PyPI nor Debian carries the plugin, which is what the tests
install from.
"""
