"""Log in with a token or a one-time link, and log out."""

from __future__ import annotations

import hashlib
import hmac
import secrets

from flask import Response, g, make_response, redirect, request, url_for
from werkzeug.exceptions import TooManyRequests

from shared.config.console import Console
from shared.store.operations.sessions import TRIES_S
from webhook.console.authorization import Authorization
from webhook.console.csrf import HOME, inside
from webhook.console.page_registry import ActionDone, PageRegistry, query_arg

TRIES = 10
"""Login attempts allowed for one user name within TRIES_S (seconds)."""

_NOBODY = "-"
_STRANGER = secrets.token_bytes(32)


class Login:
    """The pages that need no session."""

    def __init__(self, registry: PageRegistry, guard: Authorization) -> None:
        self._registry, self._guard = registry, guard
        self._console: Console = registry.services.settings.console
        self._logins = registry.services.logins

    def form(self) -> Response:
        """Show the login form, or the button of a one-time link: a GET does not redeem it."""
        values = {"next": inside(query_arg("next")), "once": query_arg("once"), "problem": ""}
        return self._registry.render("login.html", values)

    def enter(self) -> Response:
        """Begin a session for the holder of a user's token. Raises TooManyRequests after TRIES
        attempts, StoreError.
        """
        name, token = request.form.get("user", "").strip(), request.form.get("token", "").strip()
        user = self._console.users.get(name)
        with self._registry.services.gate.passing():
            self._limit(name, known=user is not None)
            given = hashlib.sha256(token.encode(errors="replace")).digest()
            # The same comparison for a user who does not exist (RELIABILITY T5).
            equal = hmac.compare_digest(given, user.digest if user else _STRANGER)
            if not (user and equal):
                g.facts["reason"] = "login-wrong"
                values = {
                    "next": inside(request.form.get("next", "")), "once": "",
                    "problem": "No user has this name and token.",
                }  # fmt: skip
                return self._registry.render("login.html", values, 401)
            self._logins.forgive(name)
            return self._begin(name, "with a token", request.form.get("next", ""))

    def once(self) -> Response:
        """Begin a session for the holder of a one-time link. Raises StoreError."""
        with self._registry.services.gate.passing():
            name = self._logins.redeem(request.form.get("once", ""))
            if name is None or name not in self._console.users:
                g.facts["reason"] = "link-wrong"
                problem = (
                    "This link was used or has expired. For a new one, run: sitemapd console link"
                )
                values = {"next": HOME, "once": "", "problem": problem}
                return self._registry.render("login.html", values, 401)
            return self._begin(name, "with a one-time link", "")

    def leave(self) -> Response:
        """End the session. Raises StoreError."""
        with self._registry.services.gate.passing():
            self._registry.record("logout", ActionDone("logged out"))
            self._logins.end(request.cookies.get(self._guard.cookie(), ""))
        answer = make_response(redirect(url_for("console.login"), 303))
        answer.delete_cookie(
            self._guard.cookie(), "/admin", secure=self._guard.secure(), httponly=True,
            samesite="Strict",
        )  # fmt: skip
        return answer

    def _limit(self, name: str, *, known: bool) -> None:
        """Refuse more attempts than TRIES; one-time links from the command line still work.

        Unknown names are counted individually, as those of users are: a shared count would reveal
        which names exist (RELIABILITY T5).
        """
        tries = self._logins.tries(name)
        if tries <= TRIES:
            return
        g.facts["reason"] = "login-limit"
        if tries == TRIES + 1 and (known or self._logins.tries(_NOBODY) == 1):
            said = f"more than {TRIES} tries within {TRIES_S} s: refused temporarily"
            who = name if known else _NOBODY
            self._registry.services.audit.write(who, "login", said, way="console", done=False)
        raise TooManyRequests(
            f"Too many tries: wait {TRIES_S} s, or use the command sitemapd console link.",
            retry_after=TRIES_S,
        )

    def _begin(self, name: str, how: str, there: str) -> Response:
        user = self._console.users[name]
        seconds = int(self._console.session_hours * 3600)
        g.user, g.role = name, user.role
        g.facts["user"] = name
        self._registry.record("login", ActionDone(f"logged in {how}"))
        cookie = self._logins.begin(name, user.stamp, seconds)
        answer = make_response(redirect(inside(there), 303))
        answer.set_cookie(
            self._guard.cookie(), cookie, max_age=seconds, path="/admin",
            secure=self._guard.secure(), httponly=True, samesite="Strict",
        )  # fmt: skip
        return answer
