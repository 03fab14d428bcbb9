"""One small pure file per kind of sender: bytes and headers in, events or our error out."""
