"""Telling search engines of what was published."""
