"""The protocol's extensions of an entry: images, videos, news and alternates (PROTOCOL C0); the
members of an event that carry them are in shared/events.
"""
