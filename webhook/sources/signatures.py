"""How vendors sign: digests of what they send, tokens, passwords. Pure, and in constant time.

Whatever cannot be read is a signature that is wrong, never another error (RELIABILITY T1, T5).
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
    """UnauthorizedError unless `given` is the digest of `content` by one of the secrets."""
    if given is None:
        raise UnauthorizedError("signature-malformed")
    if not any_equal([given], [hmac.digest(secret, content, how) for secret in secrets]):
        raise UnauthorizedError("signature-wrong")


def hexed(text: str) -> bytes | None:
    """The bytes of a text of hex digits."""
    try:
        return bytes.fromhex(text) if text and not set(text) & set(" \t") else None
    except ValueError:
        return None


def based(text: str) -> bytes | None:
    """The bytes of base64, of either alphabet, padded or not."""
    plain = text.replace("-", "+").replace("_", "/").rstrip("=")
    try:
        return base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True) if plain else None
    except (binascii.Error, ValueError):
        return None


def header(headers: Mapping[str, str], name: str) -> str:
    """A header that must be there; UnauthorizedError where it is not."""
    if not headers.get(name):
        raise UnauthorizedError("credentials-missing")
    return headers[name]


def moment(text: str) -> int:
    """A signed time in milliseconds; UnauthorizedError for anything else."""
    if not _MOMENT.fullmatch(text):
        raise UnauthorizedError("timestamp-malformed")
    return int(text)


def pairs(text: str) -> dict[str, str]:
    """The members of `a=1, b=2`; the first of equal names."""
    found: dict[str, str] = {}
    for part in text.split(",", 16)[:16]:
        name, _, value = part.strip(" \t").partition("=")
        found.setdefault(name, value)
    return found


def token(headers: Mapping[str, str], secrets: Sequence[bytes]) -> None:
    """UnauthorizedError unless one of the secrets comes as a Bearer token."""
    given = _BEARER.fullmatch(header(headers, "authorization"))
    if given is None:
        raise UnauthorizedError("token-malformed")
    if not any_equal([given[1].encode("ascii")], secrets):
        raise UnauthorizedError("token-wrong")


def password(headers: Mapping[str, str], secrets: Sequence[bytes]) -> None:
    """UnauthorizedError unless one of the secrets, `user:password`, comes as HTTP basic."""
    given = _BASIC.fullmatch(header(headers, "authorization"))
    raw = based(given[1]) if given else None
    if raw is None:
        raise UnauthorizedError("password-malformed")
    if not any_equal([raw], secrets):
        raise UnauthorizedError("password-wrong")
