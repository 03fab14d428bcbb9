"""Checks of a site's state, files and served files, and the repair of its state. Comparison with a
source belongs to worker/reconcile.
"""
