"""Outputs of a site beside its sitemap: feeds and the files of its table `outputs`, which the
sitemap never waits for. What lists pages is elsewhere.
"""
