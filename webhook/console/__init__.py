"""The console at /admin/: what the service does, for people (RELIABILITY T26-T30)."""
