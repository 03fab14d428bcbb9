"""Console logins: sessions, one-time links, and counts of login attempts.

Only the SHA-256 of a secret is stored: read access to Redis allows no login (RELIABILITY T30).
"""

from __future__ import annotations

import hashlib
import json
import secrets
import time
from typing import Any, NamedTuple

import redis

from shared.store.client import answering
from shared.store.keys import EVERYWHERE

LINK_S = 600
"""Lifetime of a one-time link (s)."""
TRIES_S = 60

_SESSION = EVERYWHERE + "session:"
_ONCE = EVERYWHERE + "once:"
_TRIES = EVERYWHERE + "tries:"
_BYTES = 32
_LONGEST = 64


class Session(NamedTuple):
    """Session of a user, begun at `since` (s since 1970).

    `stamp` is that of the user's token at that time; forms carry `csrf`.
    """

    user: str
    stamp: str
    csrf: str
    since: int


class Sessions:
    """Sessions and links of one Redis."""

    def __init__(self, client: redis.Redis) -> None:
        self._client = client

    def begin(self, user: str, stamp: str, seconds: int) -> str:
        """Begin a session of `user` for so many seconds; return the secret for its cookie."""
        cookie = secrets.token_urlsafe(_BYTES)
        session = Session(user, stamp, secrets.token_urlsafe(_BYTES), int(time.time()))
        with answering():
            self._client.set(_key(_SESSION, cookie), json.dumps(session), ex=seconds)
        return cookie

    def find(self, cookie: str) -> Session | None:
        """Return the session of a cookie; None if it has ended or never existed."""
        if not 0 < len(cookie) <= _LONGEST:
            return None
        with answering():
            found: Any = self._client.get(_key(_SESSION, cookie))
        return Session(*json.loads(found)) if found else None

    def end(self, cookie: str) -> None:
        """End the session of a cookie."""
        with answering():
            self._client.delete(_key(_SESSION, cookie))

    def link(self, user: str) -> str:
        """Return the secret of a new one-time link for `user`, valid for LINK_S seconds."""
        once = secrets.token_urlsafe(_BYTES)
        with answering():
            self._client.set(_key(_ONCE, once), user, ex=LINK_S)
        return once

    def redeem(self, once: str) -> str | None:
        """Use up a one-time link and return its user; None if it is used, expired or unknown."""
        with answering():
            found: Any = self._client.getdel(_key(_ONCE, once))
        return found.decode() if found else None

    def tries(self, user: str) -> int:
        """Count a login attempt as `user`; return the number within TRIES_S seconds."""
        key = _tries(user)
        with answering():
            pipe = self._client.pipeline()
            pipe.incr(key)
            pipe.expire(key, TRIES_S, nx=True)
            return int(pipe.execute()[0])

    def forgive(self, user: str) -> None:
        """Reset the count of login attempts of `user`."""
        with answering():
            self._client.delete(_tries(user))


def _key(prefix: str, secret: str) -> str:
    return prefix + hashlib.sha256(secret.encode(errors="replace")).hexdigest()


def _tries(user: str) -> str:
    """Return the key that counts the attempts of `user`: clients choose the name, so all share
    4,096 counts. A client that finds a name with the same count could use the user's name as well.
    """
    return _TRIES + hashlib.sha256(user.encode(errors="replace")).hexdigest()[:3]
