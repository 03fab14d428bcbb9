"""Holds the parts of a site's state against each other, and repairs what disagrees (N14)."""
