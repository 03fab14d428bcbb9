"""Authorize every request under /admin before its view runs.

In this order: an unknown Host is 400 (RELIABILITY T29); a wrong method is 405; a POST that is not
from a page of the console is 403 (T27); without a session pages and forms redirect to the login and
all other requests are 401 (T26); a POST without the token of the session is 403, and so is a
viewer's.
"""

from __future__ import annotations

import hmac

from flask import Blueprint, Response, g, make_response, redirect, request, url_for
from werkzeug.exceptions import BadRequest, Forbidden, Unauthorized

from shared.store.operations.sessions import Session
from webhook.console import csrf
from webhook.console.csrf import HOME
from webhook.console.page_registry import UNDONE, PageRegistry, came_from
from webhook.request_body import headers

OPEN = frozenset({"console.asset", "console.login", "console.enter", "console.once"})
"""Endpoints that need no session."""
MAX_FORM = 65_536
LIVE = "X-Live"
"""Header with which a live page requests itself again."""

_POLICY = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; "
    "img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    # Not no-referrer: with it browsers send `Origin: null` with forms (Fetch, append a request
    # Origin header), and a forged form could not be distinguished from a user's.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class Authorization:
    """Authorizes each request, and adds the security headers to each response."""

    def __init__(self, registry: PageRegistry) -> None:
        self._registry = registry
        self._console = registry.services.settings.console

    def install(self, blueprint: Blueprint) -> None:
        """Register for all of /admin, unknown addresses included."""
        blueprint.before_app_request(self.check)
        blueprint.after_app_request(self.mark)

    def check(self) -> Response | None:
        """Return None to pass the request, or a redirect to the login. Raises HTTPException for a
        refused request, StoreError.
        """
        if not _concerns():
            return None
        known = csrf.origin(self._console, request.host)
        if known is None:
            raise BadRequest("The console is not at this address: see `origin` in [console].")
        g.origin = known
        if request.routing_exception is not None:
            return None
        request.max_content_length = MAX_FORM
        posted = request.method not in {"GET", "HEAD"}
        if posted and not csrf.ours(headers(request.environ), known):
            g.facts["reason"] = "origin"
            raise Forbidden("This form was not sent by a page of this console.")
        if request.endpoint in OPEN:
            return None
        session = self.session()
        if session is None:
            return self._to_login()
        g.session, g.user = session, session.user
        g.role = self._console.users[session.user].role
        g.facts["user"] = g.user
        if posted:
            self._check_post(session)
        return None

    def session(self) -> Session | None:
        """Return the session of this request, whose user must still be configured with the same
        token.
        """
        cookie = request.cookies.get(self.cookie(), "")
        if not cookie:
            return None
        with self._registry.services.gate.passing():
            session = self._registry.services.logins.find(cookie)
        user = self._console.users.get(session.user) if session else None
        if session is None or user is None or user.stamp != session.stamp:
            return None
        return session

    def cookie(self) -> str:
        """Return the name of the cookie: over https with a prefix that browsers refuse over plain
        http.
        """
        return "__Secure-sitemapd" if self.secure() else "sitemapd"

    @staticmethod
    def secure() -> bool:
        """Return True if the console is requested over https."""
        return str(g.origin).startswith("https:")

    def _check_post(self, session: Session) -> None:
        given = request.form.get("csrf", "").encode()
        if not hmac.compare_digest(given, session.csrf.encode()):
            g.facts["reason"] = "csrf"
            raise Forbidden("This form is of another session: open the page again.")
        if request.endpoint in self._registry.operators and g.role != "operator":
            g.facts["reason"] = "role"
            raise Forbidden(f"{g.user} has read access only: actions need the role operator.")

    @staticmethod
    def _to_login() -> Response:
        """Redirect to the login, and from there to the page; a form is never sent again by itself:
        its page offers it again.
        """
        if request.method not in {"GET", "POST"} or LIVE in request.headers:
            raise Unauthorized("Log in first.")
        if request.method == "POST":
            there = came_from()
            join = "&" if "?" in there else "?"
            return make_response(
                redirect(url_for("console.login", next=f"{there}{join}{UNDONE}=1"), 303)
            )
        query = request.query_string.decode("latin-1")
        there = request.path + (f"?{query}" if query else "")
        after = None if csrf.inside(there) == HOME else there
        return make_response(redirect(url_for("console.login", next=after), 303))

    @staticmethod
    def mark(answer: Response) -> Response:
        """Add the security headers; answer 304 to a live page that has not changed."""
        if not _concerns():
            return answer
        answer.headers.update(_POLICY)
        if request.endpoint != "console.asset" or answer.status_code != 200:
            answer.headers["Cache-Control"] = "no-store"
        if LIVE in request.headers and answer.status_code == 200:
            answer.add_etag(weak=True)
            answer.make_conditional(request)
        return answer


def _concerns() -> bool:
    path = request.path
    return path.startswith(HOME) or path == "/admin"
