"""The published description says what the code does."""

from __future__ import annotations

import pytest

from shared.config.settings import Settings
from shared.events.event import FIELDS, TYPES
from webhook.app import create_app
from webhook.openapi.document import EVENT
from webhook.openapi.document import document as openapi
from webhook.problems import PROBLEMS, document


def test_it_names_exactly_the_members_that_are_read():
    assert set(FIELDS) == set(EVENT["properties"])
    assert list(TYPES) == EVENT["properties"]["type"]["enum"]


def test_it_describes_every_address_and_method():
    app = create_app(Settings(redis_url="unix:///nowhere"))
    routes = {
        (rule.rule.replace("<", "{").replace(">", "}"), method.lower())
        for rule in app.url_map.iter_rules()
        for method in (rule.methods or set()) - {"HEAD"}
    }
    described = {
        (path, method)
        for path, item in openapi()["paths"].items()
        for method in item
        if method != "parameters"
    }

    assert routes == described


def test_it_is_valid():
    validator = pytest.importorskip(
        "openapi_spec_validator", reason="openapi-spec-validator is not installed"
    )
    validator.validate(openapi())


def test_every_problem_has_the_members_that_are_described():
    described = set(openapi()["components"]["schemas"]["Problem"]["properties"])
    for code in PROBLEMS:
        assert described - {"errors"} == set(document(code, "", "id"))


def test_no_problem_has_a_status_that_senders_follow_or_misread():
    assert {400, 401, 404, 405, 408, 409, 411, 413, 415, 422, 429, 500, 503} == {
        problem.status for problem in PROBLEMS.values()
    }
