"""Backups: take a snapshot, keep it in a file and restore it; not the commands
(deploy/commands/backup.py).
"""
