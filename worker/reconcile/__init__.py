"""Import of a source, and reconciliation of a site with it, both by ordinary events. Parsing of
sources belongs to worker/sources.
"""
