"""The checks of `sitemapd doctor` and their runner. The command and its output are in
deploy/commands/doctor.py.
"""
