"""Backups: take a snapshot, keep it in a file and restore it. The commands are in
deploy/commands/backup.py.
"""
