"""Adapters, one pure module for each kind of sender: bytes and headers in, events or an error out.
No framework and no Redis.
"""
