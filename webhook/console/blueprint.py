"""Assembly of the console: its pages, actions and error pages in one Flask blueprint."""

from __future__ import annotations

from flask import Blueprint, Flask, Response, g
from werkzeug.exceptions import HTTPException, NotFound

from shared.errors import InvalidError, StoreError
from shared.telemetry import logs
from webhook.console.assets import Assets
from webhook.console.authorization import Authorization
from webhook.console.login import Login
from webhook.console.page_registry import PageRegistry
from webhook.console.presentation import charts, template_filters
from webhook.console.services import Services
from webhook.console.views import VIEWS
from webhook.problems import RETRY_AFTER_S

_LOG = logs.logger("console")


def install(app: Flask, services: Services) -> None:
    """Serve the console under /admin, if users are configured."""
    if not services.settings.console.users:
        return
    blueprint = Blueprint("console", "webhook.console", template_folder="templates")
    registry, assets = PageRegistry(services, blueprint), Assets()
    guard = Authorization(registry)
    guard.install(blueprint)
    login = Login(registry, guard)
    add = blueprint.add_url_rule
    add("/static/<name>", "asset", assets.serve, methods=["GET"])
    add("/login", "login", login.form, methods=["GET"])
    add("/login", "enter", login.enter, methods=["POST"])
    add("/login/once", "once", login.once, methods=["POST"])
    add("/logout", "logout", login.leave, methods=["POST"])
    for view in VIEWS:
        view.install(registry)
    add("/<path:_anything>", "nothing", _nothing, methods=["GET"])
    blueprint.register_error_handler(Exception, lambda error: _refuse(registry, error))
    app.register_blueprint(blueprint, url_prefix="/admin")
    app.jinja_env.filters.update(template_filters.FILTERS)
    app.jinja_env.globals.update(asset=assets.name, charts=charts)


def _nothing(_anything: str) -> Response:
    raise NotFound("There is no page at this address.")


def _refuse(registry: PageRegistry, error: Exception) -> Response:
    """Return the error page for any exception; an unexpected one is logged with its trace."""
    if isinstance(error, StoreError):
        g.facts["reason"] = f"{type(error).__name__}: {error}"
        values = {
            "title": "Redis does not answer",
            "detail":
                "The console needs Redis. Nothing is lost: events are refused with 503 until "
                "Redis answers, and senders retry.",
        }  # fmt: skip
        answer = registry.render("problem.html", values, 503)
        answer.headers["Retry-After"] = str(RETRY_AFTER_S)
        return answer
    if isinstance(error, InvalidError):
        values = {"title": "This page cannot be shown", "detail": f"{error}."}
        return registry.render("problem.html", values, 422)
    if isinstance(error, HTTPException) and error.code is not None and error.code < 500:
        if 300 <= error.code < 400:
            return error.get_response()  # type: ignore[return-value]
        values = {"title": error.name, "detail": error.description or ""}
        answer = registry.render("problem.html", values, error.code)
        for name, value in error.get_headers():
            if name in {"Allow", "Retry-After"}:
                answer.headers[name] = value
        return answer
    _LOG.error("internal error", exc_info=error)
    values = {
        "title": "Internal error",
        "detail": "See the log of the web process.",
    }
    return registry.render("problem.html", values, 500)
