"""The table `[alerts]`: what it refuses, what it does not show, and its place in a first start."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from deploy.local.first_run import first_config
from shared.alerts.lifecycle import AlertRule
from shared.config.alerts import Alerts, ConditionSettings
from shared.config.settings import load
from shared.errors import ConfigError

EMAIL = {"host": "smtp.example.com", "sender": "a@example.com", "to": ["b@example.com"]}
WEBHOOK = {"url": "https://ops.example.com/", "secret": "env:SECRET"}
CANARY = "canary-of-the-password"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"email": {**EMAIL, "security": "plain"}}, "only for a server on this machine"),
        ({"email": {**EMAIL, "security": "none"}}, "starttls"),
        ({"email": {**EMAIL, "user": "alerts"}}, "set both or none"),
        ({"email": {**EMAIL, "password": CANARY}}, "set both or none"),
        ({"email": {**EMAIL, "to": []}}, "at least 1"),
        ({"email": {**EMAIL, "to": ["Ops <b@example.com>"]}}, "without a name"),
        ({"email": {**EMAIL, "sender": "a@example.com\r\nBcc: c@example.com"}}, "without a name"),
        ({"email": {**EMAIL, "host": "smtp.example.com:25"}}, "without scheme, port"),
        ({"webhook": {**WEBHOOK, "secret": CANARY}}, "must be whsec_"),
        ({"webhook": {**WEBHOOK, "url": "ops.example.com"}}, "must be https://"),
        ({"slack": {"url": "ftp://x/y"}}, "must be https://"),
        ({"failed": {"limit": -1}}, "greater than or equal"),
        ({"late": {"limit": 0}}, "greater than or equal"),
        ({"disk": {"limit": 101}}, "less than or equal"),
        ({"fulldisk": {}}, "Extra inputs"),
        ({"messages_per_hour": 0}, "greater than or equal"),
    ],
)  # fmt: skip
def test_what_cannot_be_meant_is_refused_without_a_secret(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError) as raised:
        Alerts.model_validate(given)

    shown = str([each["msg"] for each in raised.value.errors(include_input=False)])
    assert said in shown
    assert CANARY not in shown


def test_no_secret_is_shown() -> None:
    given = {
        "email": {**EMAIL, "user": "alerts", "password": CANARY},
        "slack": {"url": f"https://hooks.example.com/{CANARY}"},
    }

    assert CANARY not in repr(Alerts.model_validate(given))


@pytest.mark.parametrize(("security", "port"), [("starttls", 587), ("tls", 465), ("plain", 25)])
def test_a_port_follows_from_the_security(security: str, port: int) -> None:
    given = {**EMAIL, "host": "localhost", "security": security}

    email = Alerts.model_validate({"email": given}).email
    assert email is not None
    assert email.used_port == port


def test_a_condition_can_be_switched_off_changed_and_scoped() -> None:
    alerts = Alerts.model_validate({
        "held": {"on": False}, "late": {"limit": 9, "sites": ["www"]}, "end_minutes": 1,
        "engines": {"limit": 2},
    })  # fmt: skip

    assert "held" not in alerts.limits("www")
    assert alerts.limits("www")["late"] == 9
    assert "late" not in alerts.limits("blog")
    assert alerts.limits("blog")["engines"] == 2
    assert alerts.rules["engines"] == AlertRule(30 * 60_000, 60_000)
    assert alerts.channels == ()


def test_a_site_that_is_not_configured_is_named(tmp_path: Path) -> None:
    path = tmp_path / "sitemapd.toml"
    path.write_text(
        '[alerts.late]\nsites = ["www", "nix"]\n[sites.www]\nbase_url = "https://www.example.com"\n'
        'web_root = "public"\ntokens = ["0123456789abcdef"]\n'
    )

    with pytest.raises(ConfigError) as raised:
        load(path)
    assert [str(fault) for fault in raised.value.faults] == [
        "alerts: late.sites: nix is not a configured site (config)"
    ]


def test_every_field_is_in_the_first_configuration(tmp_path: Path) -> None:
    """And what is shown there is taken as it stands."""
    lines = first_config.write(tmp_path, "https://www.example.com").read_text().splitlines()
    shown = [line.removeprefix("# ") for line in lines if not line.startswith("#  ")]
    at = shown.index("[alerts]")
    some = shown[at : shown.index("", at)]
    text = "\n".join(line for line in some if line.startswith("[") or " = " in line)
    tables = tomllib.loads(text)["alerts"]

    Alerts.model_validate(tables)
    of_channels = {"email", "webhook", "slack"}
    plain = {
        name for name, field in Alerts.model_fields.items() if field.annotation in {str, int, float}
    }
    assert plain | of_channels <= set(tables)
    for name in of_channels:
        (model,) = [m for m in Alerts.model_fields[name].annotation.__args__ if m is not type(None)]  # type: ignore[union-attr]
        assert set(model.model_fields) == set(tables[name]), name
    assert set(ConditionSettings.model_fields) == set(tables["failed"])
