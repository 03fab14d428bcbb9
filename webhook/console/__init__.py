"""The console for people at /admin/ (RELIABILITY T26-T30); its actions are in shared/admin."""
