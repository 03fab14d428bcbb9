"""Inbox of accepted events: add, read, acknowledge and dead-letter them; not their effect on pages
(shared/store/pages).
"""
