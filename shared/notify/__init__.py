"""Which search engines a site tells of changes, and which hubs tell it."""
