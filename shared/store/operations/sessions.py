"""Who is logged in to the console: sessions, one-time links, and how often a login was tried.

Of what is random only the SHA-256 is kept: who reads Redis cannot log in with it (RELIABILITY T30).
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
"""How long a one-time link can be used."""
TRIES_S = 60

_SESSION = EVERYWHERE + "session:"
_ONCE = EVERYWHERE + "once:"
_TRIES = EVERYWHERE + "tries:"
_BYTES = 32
_LONGEST = 64


class Session(NamedTuple):
    """Somebody who logged in at `since` (s since 1970).

    `stamp` is that of the user's token then; forms carry `csrf`.
    """

    user: str
    stamp: str
    csrf: str
    since: int


class Sessions:
    """The sessions and links of one Redis."""

    def __init__(self, client: redis.Redis) -> None:
        self._client = client

    def begin(self, user: str, stamp: str, seconds: int) -> str:
        """A new session of `user` for so many seconds: the secret that its cookie holds."""
        cookie = secrets.token_urlsafe(_BYTES)
        session = Session(user, stamp, secrets.token_urlsafe(_BYTES), int(time.time()))
        with answering():
            self._client.set(_key(_SESSION, cookie), json.dumps(session), ex=seconds)
        return cookie

    def find(self, cookie: str) -> Session | None:
        """The session of a cookie, None if it has ended or never was."""
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
        """The secret of a new one-time link that logs `user` in, for LINK_S."""
        once = secrets.token_urlsafe(_BYTES)
        with answering():
            self._client.set(_key(_ONCE, once), user, ex=LINK_S)
        return once

    def redeem(self, once: str) -> str | None:
        """The user of a one-time link, which is used up by this; None if it was, or is too old."""
        with answering():
            found: Any = self._client.getdel(_key(_ONCE, once))
        return found.decode() if found else None

    def tries(self, user: str) -> int:
        """How often a login as `user` was tried within TRIES_S, this time included."""
        key = _tries(user)
        with answering():
            pipe = self._client.pipeline()
            pipe.incr(key)
            pipe.expire(key, TRIES_S, nx=True)
            return int(pipe.execute()[0])

    def forgive(self, user: str) -> None:
        """Count the tries of `user` anew."""
        with answering():
            self._client.delete(_tries(user))


def _key(prefix: str, secret: str) -> str:
    return prefix + hashlib.sha256(secret.encode(errors="replace")).hexdigest()


def _tries(user: str) -> str:
    """Where the tries of `user` are counted: strangers choose the name, so there are 4,096 counts
    for all of them. Who finds a name that shares the count of another could as well try the other.
    """
    return _TRIES + hashlib.sha256(user.encode(errors="replace")).hexdigest()[:3]
