"""Import of a source, and comparison of a site with it, both by ordinary events; not the parsing of
sources (worker/sources).
"""
