"""The body of a request: its length, its bytes, strict JSON; no framework and not what it means."""
