"""Consistency checks of the parts of a site's state, and their repair (N14). Checks of served files
belong to the parent package.
"""
