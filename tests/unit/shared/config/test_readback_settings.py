"""The tables of engines that are read: credentials of their own or of notify, hosts, defaults."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from pydantic import SecretStr

from deploy.local.first_run import first_config
from shared.config.sites.readback import ReadbackSettings, ReaderSettings
from tests.unit.configured import Load, faults, with_site

NOTIFY = {
    "google": (
        '[sites.demo.notify.search_console]\ncredentials = "env:A"\n'
        'property = "sc-domain:a.example"'
    ),
    "bing": '[sites.demo.notify.bing]\nkey = "env:B"\nsite = "https://a.example"',
    "yandex": (
        '[sites.demo.notify.yandex]\ntoken = "env:C"\nuser_id = 7\nhost_id = "https:a.example:443"'
    ),
}  # fmt: skip


def told(load: Load, lines: str) -> str:
    """The first fault of a site with these lines."""
    found = faults(load, with_site(lines))
    return next(iter(found.values()))


@pytest.mark.parametrize("engine", NOTIFY)
def test_an_empty_table_has_the_credentials_of_the_notified_engine(load: Load, engine: str) -> None:
    site = load(with_site(f"{NOTIFY[engine]}\n[sites.demo.readback.{engine}]")).sites["demo"]
    account = site.readback.engines[engine].account(site.notify)
    given = {"google": site.notify.search_console, "bing": site.notify.bing,
             "yandex": site.notify.yandex}[engine]  # fmt: skip

    assert account is not None
    assert given is not None
    names = {"google": ("credentials", "property", "token_endpoint"), "bing": ("key", "site"),
             "yandex": ("token", "user_id", "host_id")}[engine]  # fmt: skip
    for name in names:
        assert getattr(account, name) == getattr(given, name)


@pytest.mark.parametrize("engine", NOTIFY)
def test_without_credentials_anywhere_it_says_where_they_belong(load: Load, engine: str) -> None:
    assert "needs credentials" in told(load, f"[sites.demo.readback.{engine}]")


@pytest.mark.parametrize(
    ("lines", "detail"),
    [
        ('key = "env:B"\nendpoint = "https://elsewhere.example/json"', "add it to notify.hosts"),
        ('key = "env:B"\nendpoint = "http://ssl.bing.com/json"', "use https://"),
        ('key = "env:B"\nper_minute = 5', "greater than or equal to 6"),
    ],
)
def test_addresses_and_rates_are_bounded(load: Load, lines: str, detail: str) -> None:
    assert detail in told(load, f"[sites.demo.readback.bing]\n{lines}")


def test_google_allows_no_more_than_2000_inspections_a_day(load: Load) -> None:
    assert "2000" in told(load, f"{NOTIFY['google']}\n[sites.demo.readback.google]\ndaily = 2001")


def test_nothing_is_read_unless_it_is_configured(load: Load) -> None:
    assert load(with_site("")).sites["demo"].readback.engines == {}


def test_the_first_configuration_shows_every_setting_and_its_default(tmp_path: Path) -> None:
    text = first_config.write(tmp_path, "http://127.0.0.1:8080").read_text()
    at = text.index("# [sites.demo.readback]")
    lines = text[at : text.index("\n\n", at)].splitlines()
    shown = tomllib.loads("\n".join(line.removeprefix("# ") for line in lines))
    table = shown["sites"]["demo"]["readback"]

    assert {*table} == {*ReadbackSettings.model_fields}
    common = {*ReaderSettings.model_fields}
    for name, field in ReadbackSettings.model_fields.items():
        if name in NOTIFY:
            model = {each.__name__.lower().removesuffix("reader"): each
                     for each in ReaderSettings.__subclasses__()}[name]  # fmt: skip
            own = {*model.model_fields} - (common if name != "google" else set())
            assert {*table[name]} == own
            for key, value in table[name].items():
                default = model.model_fields[key].default
                if default is not None and not isinstance(default, SecretStr):
                    assert value == default
        else:
            assert table[name] == field.default
