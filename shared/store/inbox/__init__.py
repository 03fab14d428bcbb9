"""The inbox of accepted events: add, read, acknowledge and dead-letter them; not what they do to
pages (shared/store/pages).
"""
