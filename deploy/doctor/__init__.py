"""The checks of `sitemapd doctor` and their runner; not the command and its output
(deploy/commands/doctor.py).
"""
