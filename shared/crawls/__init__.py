"""Access logs, parsed to tell when each crawler fetched what was published; no Redis, no output."""
