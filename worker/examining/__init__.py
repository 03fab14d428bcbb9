"""Checking whether what a site lists is right: every page, every file, and as it is served."""
