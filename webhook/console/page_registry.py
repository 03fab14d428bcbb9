"""Registry of pages and actions, and the frame around every page.

    def install(frame: PageRegistry) -> None:
        frame.page("Events", "/events", lambda: Shown("events.html", {...}), live=True)
        frame.action("replay", "/failed/replay", replay)

A page reads and changes nothing (RELIABILITY T27). An action is a POST by an operator: it is
recorded in the audit log, and redirects to a page that begins with its outcome.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlencode, urlsplit

from flask import (
    Blueprint,
    Response,
    abort,
    g,
    make_response,
    redirect,
    render_template,
    request,
    url_for,
)
from werkzeug.datastructures import MultiDict

from shared.batches import batches
from shared.errors import SitemapdError, StoreDownError
from shared.store.operations.config_reports import refusal_shown
from webhook.console.csrf import inside
from webhook.console.services import Services

NAVIGATION = (
    "Overview", "Sites", "Events", "Queues", "Failed", "Files", "Page inspector", "Checks",
    "Workers", "Notifications", "Index status", "Audit",
)  # fmt: skip
"""The titles of all pages in the order of the navigation; those that are registered are shown."""

OUTCOME = "did"
"""Query parameter with the id of the audit log entry whose outcome the page shows."""
OUTCOME_S = 300
UNDONE = "undone"
"""Query parameter of a page whose form was sent after the session had ended."""

SWITCHED = 50
"""Sites of the switch that are listed; of more, a name is typed."""

_LONGEST = 4_096
_PART = 500
_NO_FILE_NAME = re.compile(r"[^A-Za-z0-9._-]+")


class ConsolePage(NamedTuple):
    """One entry of the navigation; `per_site` if it shows one site, which can be switched;
    `all_sites` if without one it shows all of them.

    A `live` page is requested again every few seconds while it is visible.
    """

    title: str
    endpoint: str
    per_site: bool
    live: bool
    all_sites: bool = False


@dataclass(frozen=True)
class Shown:
    """The response of a page: a template, the values for it, a status."""

    template: str
    values: Mapping[str, Any] = field(default_factory=dict)
    status: int = 200


@dataclass(frozen=True)
class ActionDone:
    """The outcome of an action on `subject` of `site`, in a sentence.

    `back` is the address of the page that is shown next, by default the one with the form.
    """

    said: str
    site: str = ""
    subject: str = ""
    done: bool = True
    back: str = ""


class PageRegistry:
    """The pages and actions of one console."""

    def __init__(self, services: Services, blueprint: Blueprint) -> None:
        self.services = services
        self.pages: dict[str, ConsolePage] = {}
        """Registered pages by endpoint, in the order of the navigation."""
        self._parts: dict[str, ConsolePage] = {}
        self.operators: set[str] = set()
        """The endpoints of actions, which viewers may not use."""
        self._blueprint = blueprint

    def page(
        self, title: str, rule: str, view: Callable[[], Shown], *, per_site: bool = False,
        live: bool = False, all_sites: bool = False,
    ) -> None:  # fmt: skip
        """Serve `view` at /admin + `rule`, under a `title` of NAVIGATION."""
        name = _endpoint(title)
        page = ConsolePage(title, f"{self._blueprint.name}.{name}", per_site, live, all_sites)
        self.pages[page.endpoint] = page
        order = sorted(self.pages.values(), key=lambda page: NAVIGATION.index(page.title))
        self.pages = {page.endpoint: page for page in order}
        self._show(name, rule, view)

    def part(
        self, of: str, name: str, rule: str, view: Callable[[], Shown], *, live: bool = False
    ) -> None:
        """Serve `view` at /admin + `rule`, a page below the page `of`, which is registered before.

        `name` is the end of its endpoint.
        """
        above = self.pages[f"{self._blueprint.name}.{_endpoint(of)}"]
        self._parts[f"{self._blueprint.name}.{name}"] = above._replace(live=live, all_sites=False)
        self._show(name, rule, view)

    def _show(self, name: str, rule: str, view: Callable[[], Shown]) -> None:
        def answer() -> Response:
            with self.services.gate.passing():
                shown = view()
                return self.render(shown.template, shown.values, shown.status)

        self._blueprint.add_url_rule(rule, name, answer, methods=["GET"])

    def download(
        self, name: str, rule: str, view: Callable[[], tuple[str, Iterable[bytes]]]
    ) -> None:
        """Serve a file at /admin + `rule`: `view` returns its name and its lines of JSON."""

        def answer() -> Response:
            with self.services.gate.passing():
                file, lines = view()
                file = _NO_FILE_NAME.sub("_", file)
                return Response(
                    _in_parts(lines), content_type="application/x-ndjson",
                    headers={"Content-Disposition": f'attachment; filename="{file}"'},
                )  # fmt: skip

        self._blueprint.add_url_rule(rule, name, answer, methods=["GET"])

    def action(
        self, name: str, rule: str, view: Callable[[MultiDict[str, str]], ActionDone]
    ) -> None:
        """Run `view` with the form fields when an operator posts the form to /admin + `rule`.

        Every outcome is recorded under `name`; the endpoint is the same with _ for spaces.
        """
        endpoint = _endpoint(name)
        self.operators.add(f"{self._blueprint.name}.{endpoint}")

        def answer() -> Response:
            with self.services.gate.passing():
                try:
                    done = view(request.form)
                except StoreDownError:
                    raise
                except SitemapdError as error:
                    site = request.form.get("site", "")
                    done = ActionDone(str(error), site, request.form.get("subject", ""), done=False)
                return self.record(name, done)

        self._blueprint.add_url_rule(rule, endpoint, answer, methods=["POST"])

    def record(self, action: str, done: ActionDone) -> Response:
        """Record the outcome in the audit log, and redirect to the page that shows it. Raises
        StoreError.
        """
        g.facts.update(action=action, site=done.site, done=done.done)
        ident = self.services.audit.write(
            g.user, action, done.said, way="console", role=g.role, site=done.site,
            subject=done.subject, done=done.done,
        )  # fmt: skip
        back = done.back or came_from()
        join = "&" if "?" in back else "?"
        return make_response(redirect(f"{back}{join}{OUTCOME}={ident}", 303))

    def address(self, title: str, **parameters: str) -> str:
        """Return the address of the page `title`."""
        name = _endpoint(title)
        return url_for(f"{self._blueprint.name}.{name}", **parameters)  # type: ignore[arg-type]

    def site(self) -> str:
        """Return the requested site, by default the first; 404 for one that is not configured."""
        sites = self.services.sites
        asked = query_arg("site")
        if asked and asked not in sites:
            abort(404, f"There is no site {asked[:80]!r}: it is not in the configuration.")
        if not sites:
            abort(404, "No site is configured.")
        return asked or next(iter(sites))

    def every_site(self) -> bool:
        """Return True if no site is requested, and there are several: all of them are shown."""
        return not query_arg("site") and len(self.services.sites) > 1

    def render(self, template: str, values: Mapping[str, Any], status: int = 200) -> Response:
        """Render a page in its frame."""
        page = (self.pages | self._parts).get(request.endpoint or "")
        user = getattr(g, "user", "")
        switch = bool(user and page and page.per_site and len(self.services.sites) > 1)
        around = {
            "page": page, "pages": self.pages if user else {}, "user": user,
            "role": getattr(g, "role", ""), "csrf": g.session.csrf if user else "",
            "configuration": refusal_shown(self.services.client)
            if user and status == 200 else None,
            "outcome": self._outcome() if status == 200 else None,
            "undone": bool(user and query_arg(UNDONE)),
            "switch": self.services.sites if switch else (), "most_switched": SWITCHED,
            "site": asked if (asked := query_arg("site")) in self.services.sites else "",
        }  # fmt: skip
        return make_response(render_template(template, **(around | dict(values))), status)

    def _outcome(self) -> object:
        """Return the outcome of the user's own action, if the page is shown because of it."""
        ident = query_arg(OUTCOME)
        found = self.services.audit.find(ident) if ident and getattr(g, "user", "") else None
        if found and found.who == g.user and time.time() - found.at < OUTCOME_S:
            return found
        return None


def _endpoint(title: str) -> str:
    return title.lower().replace(" ", "_")


def _in_parts(lines: Iterable[bytes]) -> Iterator[bytes]:
    for some in batches(lines, _PART):
        yield b"\n".join((*some, b""))


def came_from() -> str:
    """Return the address of the page with the posted form, without an earlier outcome."""
    parts = urlsplit(request.headers.get("Referer", ""))
    query = urlencode([pair for pair in parse_qsl(parts.query) if pair[0] not in {OUTCOME, UNDONE}])
    return inside(f"{parts.path}?{query}" if query else parts.path)


def query_arg(name: str) -> str:
    """Return the query parameter `name`, empty if there is none."""
    return request.args.get(name, "").strip()[:_LONGEST]
