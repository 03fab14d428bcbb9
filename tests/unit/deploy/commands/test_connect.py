"""What an administrator is told about each CMS: it is complete, and what it says to paste works."""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from deploy.cli.program import app
from shared.config.settings import load
from shared.errors import ConfigError, SitemapdError
from tests.unit.webhook.sources.delivering import SECRET, STANDARD, WHSEC
from webhook.sources.registry import REGISTRY

HEAD = f"""\
[sites.demo]
base_url = "https://www.example.com"
web_root = "public"
secrets = ["{WHSEC}"]
"""


def run(home: Path, *arguments: str, more: str = "") -> Result:
    (home / "sitemapd.toml").write_text(HEAD + more)
    return CliRunner().invoke(app, ["connect", *arguments, "--home", str(home)])


def refusal(result: Result) -> SitemapdError:
    assert isinstance(result.exception, SitemapdError)
    return result.exception


@pytest.mark.parametrize("name", sorted(REGISTRY))
def test_every_cms_has_a_guide_whose_configuration_can_be_pasted(name, tmp_path):
    result = run(tmp_path, name, "--to", "https://hooks.example")
    said = result.stdout

    assert result.exit_code == 0, result.exception
    assert f"https://hooks.example/v1/sites/demo/hooks/{name}" in said
    guide = REGISTRY[name].GUIDE
    assert guide.sends in said
    assert guide.caveats in said
    last = said.splitlines()[-1]
    assert last.startswith("Evidence: ")
    assert all(f"{claim}: {source}" in last for claim, source in guide.evidence.items())
    assert "{address}" not in said
    if name in STANDARD:
        assert WHSEC in said
    if f"[sites.demo.sources.{name}]" in said:
        start = said.index("[sites.")
        table = said[start : said.index("\n\n", start)]
        pasted = table.replace('"..."', f'"{SECRET}"')
        (tmp_path / "sitemapd.toml").write_text(HEAD + pasted)
        assert name in load(tmp_path / "sitemapd.toml").sites["demo"].sources


@pytest.mark.parametrize("name", sorted(REGISTRY))
def test_what_the_steps_say_to_configure_is_toml(name):
    steps = REGISTRY[name].GUIDE.steps.format(address="", origin="", site="", secret="")
    for line in steps.splitlines():
        said = line.partition("sitemapd.toml:")[2].strip() or line.strip()
        if said.startswith(("permalinks", "locales", "secret = ")):
            tomllib.loads(said.partition("   and")[0])


def test_a_secret_that_is_configured_is_shown_and_not_made_anew(tmp_path):
    table = f'[sites.demo.sources.ghost]\nsecret = ["{SECRET}", "the-one-that-came-before"]\n'
    said = run(tmp_path, "ghost", more=table).stdout

    assert said.count(SECRET) == 1
    assert "first, in" not in said


def test_two_secrets_made_differ(tmp_path):
    assert run(tmp_path, "ghost").stdout != run(tmp_path, "ghost").stdout


def test_an_unknown_cms_is_named(tmp_path):
    error = refusal(run(tmp_path, "typo3"))

    assert isinstance(error, ConfigError)
    assert "wordpress" in str(error)


def test_the_client_for_wagtail_is_a_file_of_its_own(tmp_path):
    assert ast.parse(run(tmp_path, "wagtail", "--client").stdout)


class TestTrying:
    TABLE = f"""[sites.demo.sources.strapi]
secret = "{SECRET}"
permalinks = {{ article = "/blog/{{slug}}" }}
"""
    BODY = (
        '{"event": "entry.publish", "model": "article", "entry": {"documentId": "d", "slug": "a"}}'
    )

    def test_a_captured_body_shows_its_events(self, tmp_path):
        (tmp_path / "body.json").write_text(self.BODY)
        result = run(tmp_path, "strapi", "--try", str(tmp_path / "body.json"), more=self.TABLE)

        assert result.exit_code == 0
        assert "https://www.example.com/blog/a" in result.stdout

    def test_or_the_reason_why_there_are_none(self, tmp_path):
        (tmp_path / "body.json").write_text(self.BODY.replace("article", "author"))
        result = run(tmp_path, "strapi", "--try", str(tmp_path / "body.json"), more=self.TABLE)

        assert "no permalink for the type author" in result.stdout
        assert "ignored" in str(refusal(result))

    def test_headers_may_be_given(self, tmp_path):
        (tmp_path / "body.json").write_text('{"id": 42}')
        file = str(tmp_path / "body.json")
        result = run(
            tmp_path, "shopify", "--try", file, "--header", "X-Shopify-Topic: products/delete"
        )

        assert result.exit_code == 0
        assert "delete" in result.stdout

    @pytest.mark.parametrize(
        "content", [b"", b"\xff", b"{", b'{"body_raw": "x"}', b'{"body_raw": 5}']
    )
    def test_what_is_no_delivery_is_an_error_of_ours(self, tmp_path, content):
        (tmp_path / "body.json").write_bytes(content)
        refusal(run(tmp_path, "strapi", "--try", str(tmp_path / "body.json"), more=self.TABLE))

    def test_a_file_that_is_not_there_is_named(self, tmp_path):
        assert "gone" in str(refusal(run(tmp_path, "strapi", "--try", str(tmp_path / "gone"))))
        assert "--header" in str(refusal(
            run(tmp_path, "strapi", "--try", __file__, "--header", "x")
        ))  # fmt: skip
