"""Access logs, parsed for the times at which crawlers fetch published URLs; no Redis, no output."""
