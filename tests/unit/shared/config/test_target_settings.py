"""Targets: what is accepted, what each refusal says, and which belong to a host."""

from __future__ import annotations

from pathlib import Path

import pytest

from deploy.local.first_run import first_config
from shared.config.sites.targets import NO_DIRECTORY, TargetSettings
from tests.unit.configured import SITE, Load, faults

TARGET = """
[[sites.demo.targets]]
url = "s3://maps/www"
"""


def with_target(lines: str) -> str:
    return f"{SITE}\n[[sites.demo.targets]]\n{lines}\n"


def test_a_web_root_alone_is_the_only_target(load: Load, tmp_path: Path) -> None:
    site = load(SITE).sites["demo"]

    assert [(each.ident, each.url) for each in site.every_target] == [
        ("web-root", str(tmp_path / "public"))
    ]


def test_targets_come_after_the_web_root(load: Load) -> None:
    site = load(SITE + TARGET).sites["demo"]

    assert [each.ident for each in site.every_target] == ["web-root", "maps"]


def test_a_site_may_have_targets_and_no_web_root(load: Load) -> None:
    text = "\n".join(line for line in SITE.splitlines() if not line.startswith("web_root"))

    site = load(text + TARGET).sites["demo"]

    assert site.web_root == NO_DIRECTORY
    assert [each.ident for each in site.every_target] == ["maps"]


def test_each_host_has_its_own_directory(
    load: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "\n".join(line for line in SITE.splitlines() if not line.startswith("web_root"))
    for host in ("web1", "web2"):
        text += f'\n[[sites.demo.targets]]\nurl = "{host}"\nhost = "{host}"\n'
    monkeypatch.setenv("SITEMAPD_HOST", "web2")

    site = load(text).sites["demo"]

    assert site.web_root == tmp_path / "web2"
    assert [each.ident for each in site.targets_of("web2")] == ["web2"]
    assert [each.ident for each in site.every_target] == ["web1", "web2"]


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ('url = "ftp://maps"', "must be a directory, or begin with one of s3://, gs://, az://"),
        ('url = "s3://Maps"', "must be of the form s3://bucket"),
        ('url = "s3://maps/../x"', "must be of the form"),
        ('url = "s3://maps"\nhost = "web1"', "host: is no option of s3://"),
        ('url = "more"\nregion = "eu-west-1"', "region: is no option of a directory"),
        ('url = "gs://maps"\naccess_key_id = "a"', "access_key_id: is no option of gs://"),
        ('url = "s3://maps"\naccess_key_id = "a"', "secret_access_key: needs access_key_id"),
        ('url = "az://maps"', "account_name: is needed"),
        (
            'url = "s3://maps"\nendpoint = "http://s3.example.com"',
            "use https://, or set allow_http",
        ),
        ('url = "s3://maps"\nendpoint = "s3.example.com"', "must be an address of the form"),
        ('url = "s3://maps"\nname = "A b"', "must match"),
        ('url = "s3://maps"\nname = "web-root"', "are both called web-root"),
        ("", "Field required"),
    ],
)
def test_a_refusal_says_what_to_do(load: Load, lines: str, said: str) -> None:
    assert any(said in detail for detail in faults(load, with_target(lines)).values())


def test_a_secret_is_in_no_message(load: Load) -> None:
    lines = 'url = "s3://maps"\nsecret_access_key = "canary-tweet"'

    assert "canary" not in str(faults(load, with_target(lines)))


def test_the_first_configuration_names_every_option(tmp_path: Path) -> None:
    text = first_config.write(tmp_path, "http://127.0.0.1:8080").read_text()
    table = text.partition("[[sites.demo.targets]]")[2].partition("\n\n")[0]

    for name in TargetSettings.model_fields:
        assert f"\n# {name} = " in table
