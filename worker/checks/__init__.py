"""Checks of a site's state, of its files and of what is served, with the repair of state; no
comparison with a source (worker/reconcile).
"""
