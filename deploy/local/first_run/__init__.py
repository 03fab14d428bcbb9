"""Contents of a new installation: its configuration, its first event and its first page."""
