"""Checks that the parts of a site's state agree, and the repair where they do not (N14); no checks
of what is served.
"""
