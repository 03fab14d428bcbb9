"""Authenticate a request: bytes and headers in, a verified sender or UnauthorizedError out.

Accepts Standard Webhooks 1.0.0 signatures (HMAC-SHA256 over `id.timestamp.body`), or a Bearer token
for senders that cannot sign. A request that carries a signature is judged by the signature alone.
Digests and tokens are compared as bytes in constant time; every failure has the same response, and
a site that does not exist takes the same path with random keys (RELIABILITY T1-T5).
"""

from __future__ import annotations

import base64
import hmac
import math
import re
import secrets
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from shared.config.sites.cms_connections import fingerprint
from webhook.problems import RefusedError, UnauthorizedError

TOLERANCE_S = 300
"""Largest difference between the sender's clock and ours, in seconds, in both directions
(RELIABILITY T2).
"""

MAX_SIGNATURES = 16

# No full stops: `a.1` and `1` could otherwise be read as `a` and `1.1` (Standard Webhooks).
DELIVERY = re.compile(r"[!-\-/-~]{1,256}")
_TIMESTAMP = re.compile(r"[0-9]{1,12}")
_BEARER = re.compile(r"bearer +([!-~]+) *", re.IGNORECASE)


class SigningKey(NamedTuple):
    """A key that senders sign with, its public name, and when it expires (seconds since 1970)."""

    raw: bytes
    fingerprint: str
    expires: float

    @classmethod
    def of(cls, raw: bytes) -> SigningKey:
        """Return the key `raw`, which does not expire."""
        return cls(raw, fingerprint(raw), math.inf)

    def digest(self, content: bytes) -> bytes:
        """Return the HMAC-SHA256 of `content`."""
        mac = _begun(self.raw).copy()
        mac.update(content)
        return mac.digest()


@lru_cache(64)
def _begun(key: bytes) -> hmac.HMAC:
    """An HMAC that has taken in the key: OpenSSL takes longer for that than for a delivery."""
    return hmac.new(key, digestmod="sha256")


class Credentials(NamedTuple):
    """The credentials of a site's senders: signing keys, also expired ones, and tokens."""

    keys: Sequence[SigningKey]
    tokens: Sequence[bytes]


STRANGER = Credentials((SigningKey.of(secrets.token_bytes(32)),), (secrets.token_hex(32).encode(),))
"""Random credentials in place of those of a site that does not exist, so that its refusal takes the
same time.
"""


class Sender(NamedTuple):
    """A verified sender.

    `by` is `signature` or `token`, `delivery` the sender's id of this delivery, `key` the
    fingerprint of the secret that verified it, or `token`.
    """

    by: str
    delivery: str | None
    key: str


def verify(headers: Mapping[str, str], body: bytes, credentials: Credentials, now: float) -> Sender:
    """Return the sender of `body`; names of `headers` in lower case, `now` in seconds since 1970.

    Raises UnauthorizedError for missing, malformed or wrong credentials, RefusedError `stale` if
    the signature is valid but its time is not, and RefusedError `malformed` for an unusable
    webhook-id beside a valid token.
    """
    if "webhook-signature" in headers:
        valid = [key for key in credentials.keys if now < key.expires]
        return _signed(headers, body, valid or STRANGER.keys, now)
    check_token(headers, credentials)
    delivery = headers.get("webhook-id")
    if delivery is not None and not DELIVERY.fullmatch(delivery):
        raise RefusedError(
            "malformed", "webhook-id: up to 256 visible ASCII characters, no full stop"
        )
    return Sender("token", delivery, "token")


def check_token(headers: Mapping[str, str], credentials: Credentials) -> None:
    """Raise UnauthorizedError unless the request carries one of the site's Bearer tokens."""
    if not any_equal([bearer(headers)], credentials.tokens or STRANGER.tokens):
        raise UnauthorizedError("token-wrong")


def bearer(headers: Mapping[str, str]) -> bytes:
    """Return the Bearer token of the request. Raises UnauthorizedError if there is none."""
    given = _BEARER.fullmatch(headers.get("authorization", ""))
    if given is None:
        raise UnauthorizedError("credentials-missing")
    return given[1].encode("ascii")


def _signed(
    headers: Mapping[str, str], body: bytes, keys: Sequence[SigningKey], now: float
) -> Sender:
    delivery, timestamp = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    if not DELIVERY.fullmatch(delivery):
        raise UnauthorizedError("id-malformed")
    if not _TIMESTAMP.fullmatch(timestamp):
        raise UnauthorizedError("timestamp-malformed")
    content = b".".join((delivery.encode("ascii"), timestamp.encode("ascii"), body))
    given = _digests(headers["webhook-signature"])
    right = [key for key in keys if any_equal(given, [key.digest(content)])]
    if not right:
        raise UnauthorizedError("signature-wrong")
    check_age(int(timestamp), now)
    return Sender("signature", delivery, right[0].fingerprint)


def check_age(signed: float, now: float) -> None:
    """Raise RefusedError `stale` if `signed` is more than TOLERANCE_S from `now` (both in seconds
    since 1970).

    Call it only after the signature was verified: only a holder of the key learns the reason.
    """
    skew = signed - now
    if abs(skew) > TOLERANCE_S:
        detail = f"signed {skew:+.0f} s from now; {TOLERANCE_S} s are allowed: check the clock"
        raise RefusedError("stale", detail, reason=f"stale {skew:+.0f} s")


def _digests(header: str) -> list[bytes]:
    """Return the `v1` digests of a signature header without those that cannot be decoded."""
    found = []
    for signature in header.split(" ", MAX_SIGNATURES)[:MAX_SIGNATURES]:
        scheme, _, encoded = signature.partition(",")
        if scheme == "v1":
            try:
                found.append(base64.b64decode(encoded, validate=True))
            except ValueError:  # not ASCII, or not base64
                continue
    return found


def any_equal(given: Sequence[bytes], valid: Sequence[bytes]) -> bool:
    """Return True if any of `given` equals one of `valid`; always compares all of them."""
    equal = False
    for one in given:
        for other in valid:
            equal |= hmac.compare_digest(one, other)
    return equal
