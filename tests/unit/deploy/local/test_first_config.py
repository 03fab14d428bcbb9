"""The configuration of a first start, and the example event."""

from __future__ import annotations

import json
import re
import shlex
import stat
import tomllib
from pathlib import Path

from deploy.local.first_run import first_config, first_event
from shared.config.console import Console, User
from shared.config.operator_api import OperatorApi
from shared.config.settings import FILE, Settings, load
from shared.config.sites.cms_connections import Connection
from shared.config.sites.outputs import OutputSettings
from shared.config.sites.pages import LookSettings
from shared.config.sites.section import Section
from shared.config.sites.site import Site

ADDRESS = "http://127.0.0.1:8080"


def test_the_first_configuration_is_valid_and_private(tmp_path: Path) -> None:
    path = first_config.write(tmp_path, ADDRESS)
    settings = load(path)
    site = settings.sites["demo"]

    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert site.base_url == f"{ADDRESS}/"
    assert site.web_root == tmp_path / "public"
    assert site.robots == "create"
    assert set(site.sections) == {"posts", "products", "news"}
    assert site.sections["news"].news
    assert (len(site.secrets), len(site.tokens)) == (1, 1)
    assert {name: user.role for name, user in settings.console.users.items()} == {
        "admin": "operator"
    }


def test_an_existing_configuration_is_never_overwritten(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text("# mine\n")

    first_config.write(tmp_path, ADDRESS)

    assert (tmp_path / FILE).read_text() == "# mine\n"


def test_two_configurations_share_no_secret(tmp_path: Path) -> None:
    texts = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        texts.append(first_config.write(tmp_path / name, ADDRESS).read_text().splitlines())

    assert {line.split()[0] for line in set(texts[0]) ^ set(texts[1])} == {
        "secrets",
        "tokens",
        "token",
    }


def test_every_setting_is_named_and_every_default_shown_is_the_default(tmp_path: Path) -> None:
    text = first_config.write(tmp_path, ADDRESS).read_text()
    # These tables name fields as others do: test_notify_settings.py, test_alert_settings.py,
    # test_target_settings.py, test_readback_settings.py.
    demo = r"sites\.demo\."
    for table in (f"{demo}notify", f"{demo}readback", "alerts", rf"\[{demo}targets\]"):
        text = re.sub(rf"^# \[{table}\].*?\n\n", "\n", text, flags=re.MULTILINE | re.DOTALL)
    shown = dict(re.findall(r"^#? ?(\w+) = (\S+)", text, re.MULTILINE))

    for model in (Settings, Console, User, Site, Section, Connection, LookSettings):
        fields = model.model_fields
        for name, field in fields.items():
            if name in {
                "sites", "sections", "sources", "notify", "console", "users", "api", "alerts",
                "targets", "outputs", "readback", "pages",
            }:  # fmt: skip
                continue
            assert name in shown
            if f"# {name} = " in text and name != "shard_urls" and field.default is not None:
                default = field.default
                plain = list(default) if isinstance(default, tuple) else default
                assert tomllib.loads(f"x = {shown[name]}")["x"] == plain
    assert {name for name in OperatorApi.model_fields if f"\n# {name} = " not in text} == set()
    for name, field in OutputSettings.model_fields.items():
        plain = list(field.default) if isinstance(field.default, tuple) else field.default
        assert tomllib.loads(f"x = {shown[name]}")["x"] == plain
    assert int(shown["shard_urls"]) == Site.model_fields["shard_urls"].default


def sent(text: str) -> tuple[dict[str, str], str]:
    """The event in an example, and its text with the shell's line breaks removed."""
    joined = text.replace("\\\n", "")
    (body,) = (word for word in shlex.split(joined, comments=True) if '{"type"' in word)
    event: dict[str, str] = json.loads(body.removeprefix("body="))
    return event, joined


def test_the_example_is_an_event_of_the_demo_site(tmp_path: Path) -> None:
    settings = load(first_config.write(tmp_path, ADDRESS))

    event, text = sent(first_event.signed_example(settings, "demo", "http://127.0.0.1:9999"))

    assert event == {"type": "upsert", "loc": f"{ADDRESS}/hello-world", "section": "posts"}
    assert "http://127.0.0.1:9999/v1/sites/demo/events" in text
    assert "hexkey:" in text


def test_a_site_without_secrets_gets_a_bearer_example(tmp_path: Path) -> None:
    site = Site(base_url="http://x.example/it's/", web_root=tmp_path, tokens=("0123456789abcdef",))

    event, text = sent(first_event.signed_example(Settings(sites={"only": site}), "only", ADDRESS))

    assert event["loc"] == "http://x.example/it's/hello-world"
    assert event["section"] == "pages"
    assert "authorization: Bearer 0123456789abcdef" in text
