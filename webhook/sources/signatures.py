"""Signature schemes of vendors: digests, tokens, passwords. Pure, compared in constant time.

An unreadable signature counts as a wrong one and raises no other error (RELIABILITY T1, T5).
"""

from __future__ import annotations

import base64
import binascii
import hmac
import re
from collections.abc import Mapping, Sequence

from webhook.auth import any_equal
from webhook.problems import UnauthorizedError

_MOMENT = re.compile(r"[0-9]{1,15}")
_BEARER = re.compile(r"bearer +([!-~]+) *", re.IGNORECASE)
_BASIC = re.compile(r"basic +([A-Za-z0-9+/=]+) *", re.IGNORECASE)


def signed(given: bytes | None, content: bytes, secrets: Sequence[bytes], how: str) -> None:
    """Raise UnauthorizedError unless `given` is the digest of `content` by one of the secrets."""
    if given is None:
        raise UnauthorizedError("signature-malformed")
    if not any_equal([given], [hmac.digest(secret, content, how) for secret in secrets]):
        raise UnauthorizedError("signature-wrong")


def hexed(text: str) -> bytes | None:
    """Return the bytes of a text of hex digits, None if it is none."""
    try:
        return bytes.fromhex(text) if text and not set(text) & set(" \t") else None
    except ValueError:
        return None


def based(text: str) -> bytes | None:
    """Return the bytes of base64, of either alphabet, padded or not; None if it is none."""
    plain = text.replace("-", "+").replace("_", "/").rstrip("=")
    try:
        return base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True) if plain else None
    except (binascii.Error, ValueError):
        return None


def header(headers: Mapping[str, str], name: str) -> str:
    """Return a required header. Raises UnauthorizedError if it is missing."""
    if not headers.get(name):
        raise UnauthorizedError("credentials-missing")
    return headers[name]


def moment(text: str) -> int:
    """Return a signed time in ms since 1970. Raises UnauthorizedError for anything else."""
    if not _MOMENT.fullmatch(text):
        raise UnauthorizedError("timestamp-malformed")
    return int(text)


def pairs(text: str) -> dict[str, str]:
    """Return the members of `a=1, b=2`; of equal names the first."""
    found: dict[str, str] = {}
    for part in text.split(",", 16)[:16]:
        name, _, value = part.strip(" \t").partition("=")
        found.setdefault(name, value)
    return found


def token(headers: Mapping[str, str], secrets: Sequence[bytes]) -> None:
    """Raise UnauthorizedError unless one of the secrets is the Bearer token."""
    given = _BEARER.fullmatch(header(headers, "authorization"))
    if given is None:
        raise UnauthorizedError("token-malformed")
    if not any_equal([given[1].encode("ascii")], secrets):
        raise UnauthorizedError("token-wrong")


def password(headers: Mapping[str, str], secrets: Sequence[bytes]) -> None:
    """Raise UnauthorizedError unless one of the secrets, `user:password`, is sent as HTTP basic
    auth.
    """
    given = _BASIC.fullmatch(header(headers, "authorization"))
    raw = based(given[1]) if given else None
    if raw is None:
        raise UnauthorizedError("password-malformed")
    if not any_equal([raw], secrets):
        raise UnauthorizedError("password-wrong")
