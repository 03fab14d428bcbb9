"""The administrators' console at /admin/ (RELIABILITY T26-T30). Its actions are in shared/admin."""
