"""Edits of the configuration file: its text, and the file; not what the settings mean."""
