"""Secrets of Standard Webhooks: `whsec_` and base64 of 24 to 64 bytes."""

from __future__ import annotations

import base64
import binascii
import secrets

PREFIX = "whsec_"

_NEW_BYTES = 32


def new_secret() -> str:
    """Return a new random secret."""
    return PREFIX + base64.b64encode(secrets.token_bytes(_NEW_BYTES)).decode()


def standard_key(secret: bytes) -> bytes | None:
    """The raw key of a Standard Webhooks secret, None if the secret is none."""
    if not secret.startswith(PREFIX.encode()):
        return None
    try:
        key = base64.b64decode(secret.removeprefix(PREFIX.encode()), validate=True)
    except (binascii.Error, ValueError):
        return None
    return key if 24 <= len(key) <= 64 else None
