"""Entries that an event gives its page: the listed one, that of its news, its feed item, and their
alternates. Pure.
"""
