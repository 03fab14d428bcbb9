"""The operator's API: list, add and remove sites, add sections.

It edits the configuration by the code of the command line, and every process takes the change
as one made by hand. Off, and answered 404, without a token in `[api]` (RELIABILITY T26).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import redis
from flask import Response, g, request
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from shared.admin.outcomes import ActionOutcome, Actor
from shared.config.edit import changes
from shared.config.edit.config_file import ConfigFile
from shared.config.settings import Settings
from shared.config.sites.site import Site
from shared.errors import Fault, InvalidError
from shared.sitemap.shards import SECTION
from shared.store.client import answering
from shared.store.operations.audit_log import AuditLog
from webhook import auth, request_body
from webhook.problems import RefusedError, UnauthorizedError
from webhook.request_body import headers
from webhook.responses import answer
from webhook.tenants import Gate

DETAIL = "send a token of [api] in the configuration as Bearer"

Name = Annotated[str, Field(pattern=f"^{SECTION.pattern}$")]


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class SectionBody(_Body):
    """A section to add."""

    name: Name
    split: Literal["", "month", "language"] = ""
    news: bool = False
    paths: list[str] = Field([], max_length=100)
    languages: list[str] = Field([], max_length=100)

    def values(self) -> dict[str, Any]:
        """Return the fields that differ from their defaults."""
        found: dict[str, Any] = self.model_dump(exclude={"name"}, exclude_defaults=True)
        return found


class SiteBody(_Body):
    """A site to add."""

    name: Name
    base_url: Annotated[str, Field(min_length=1, max_length=2_048)]
    sections: list[SectionBody] = Field([], max_length=100)


Body = TypeVar("Body", bound=_Body)
Made = TypeVar("Made")


class OperatorView:
    """The addresses below `/v1/sites` that change which sites there are."""

    def __init__(
        self, settings: Settings, client: redis.Redis, gate: Gate, config: ConfigFile | None
    ) -> None:
        self._settings, self._client = settings, client
        self._gate, self._config = gate, config

    def list(self) -> Response:
        """Return the configured sites. Raises RefusedError."""
        self._authorize()
        return answer({"sites": [_shown(*each) for each in self._settings.sites.items()]})

    def add(self) -> Response:
        """Add a site; return the credentials that were made for it. Raises RefusedError,
        InvalidError, StoreError.
        """
        self._authorize()
        new = self._read(SiteBody)
        if new.name in self._settings.sites:
            raise RefusedError("exists", f"the site {new.name} is configured")
        roots = self._settings.api.web_roots
        root = str(Path(roots) / new.name) if roots else ""
        sections = {each.name: each.values() for each in new.sections}
        made = self._change(
            "site add", new.name,
            lambda file: changes.add_site(
                file, new.name, new.base_url, web_root=root, sections=sections
            ),
        )  # fmt: skip
        found = _shown(new.name, made.edit.after.sites[new.name])
        found |= {"secret": made.secret, "token": made.token, "revision": made.edit.revision}
        return answer(found, 201)

    def remove(self, site: str) -> Response:
        """Remove a site; its files and its state stay. Raises RefusedError, InvalidError,
        StoreError.
        """
        self._authorize()
        if site not in self._settings.sites:
            raise RefusedError("not-found")
        if len(self._settings.sites) == 1:
            raise RefusedError("last-site")
        made = self._change("site remove", site, lambda file: changes.remove_site(file, site))
        return answer({"removed": site, "revision": made.revision})

    def add_section(self, site: str) -> Response:
        """Add a section to a site. Raises RefusedError, InvalidError, StoreError."""
        self._authorize()
        new = self._read(SectionBody)
        if site not in self._settings.sites:
            raise RefusedError("not-found")
        if new.name in self._settings.sites[site].sections:
            raise RefusedError("exists", f"the section {new.name} is configured")
        made = self._change(
            "section add", site,
            lambda file: changes.add_section(file, site, new.name, new.values()), new.name,
        )  # fmt: skip
        return answer(_shown(site, made.after.sites[site]) | {"revision": made.revision}, 201)

    def _authorize(self) -> ConfigFile:
        """Return the configuration. Raises RefusedError where the API is off, and
        UnauthorizedError without one of its tokens.
        """
        if self._config is None or not self._settings.api.token:
            raise RefusedError("not-found")
        try:
            given = auth.bearer(headers(request.environ))
        except UnauthorizedError as error:
            raise UnauthorizedError(error.reason, DETAIL) from None
        if not auth.any_equal([given], self._settings.api.tokens()):
            raise UnauthorizedError("token-wrong", DETAIL)
        return self._config

    def _read(self, kind: type[Body]) -> Body:
        """Return the body. Raises RefusedError, InvalidError."""
        environ = request.environ
        given = headers(environ)
        request_body.media_type(given, request_body.JSON)
        body = request_body.read(environ["wsgi.input"], given, self._settings.body_limit)
        try:
            return kind.model_validate(request_body.single(body))
        except ValidationError as error:
            raise InvalidError(*_faults(error)) from None

    def _change(
        self, action: str, site: str, change: Callable[[ConfigFile], Made], subject: str = ""
    ) -> Made:
        """Change the configuration, and record it in the audit log.

        Raises StoreError before anything changes if Redis does not answer; InvalidError, and
        RefusedError if the file cannot be written.
        """
        g.facts.update(action=action, site=site)
        file = self._authorize()
        with self._gate.passing():
            with answering():
                self._client.ping()
            actor = Actor("api", "api", AuditLog(self._client), "operator")
            try:
                with actor.doing(action, site, subject):
                    made = change(file)
            except InvalidError as error:
                reasons = {fault.rule for fault in error.faults}
                if "file" in reasons:
                    raise RefusedError("not-changed", reason=str(error)) from error
                raise InvalidError(*error.faults) from error
            actor.record(ActionOutcome(action, site, subject, "the configuration was changed", ""))
        return made


def _faults(error: ValidationError) -> Iterator[Fault]:
    for each in error.errors(include_input=False, include_url=False):
        yield Fault(".".join(map(str, each["loc"])) or "body", "config", each["msg"])


def _shown(name: str, site: Site) -> dict[str, Any]:
    return {
        "name": name, "base_url": site.base_url, "web_root": str(site.web_root),
        "sections": sorted(site.limits), "events": f"/v1/sites/{name}/events",
    }  # fmt: skip
