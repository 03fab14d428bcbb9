"""The files of a site: merge, write and keep them in its web root; not the decision which pages
they list (shared/domain).
"""
