"""The tables of engines: every fault is named, with what to write instead."""

from __future__ import annotations

import tomllib
from collections.abc import MutableMapping
from pathlib import Path

import pytest
from pydantic import SecretStr

from deploy.local.first_run import first_config
from shared.config.notify import engines
from shared.config.notify.engines import secret_of
from shared.config.notify.tables import KNOWN_HOSTS, NotifySettings
from shared.errors import CredentialError
from tests.unit.configured import CANARY, Load, faults, with_site

KEY = "0123456789abcdef"
TABLE = "[sites.demo.notify.{}]\n{}"


FROM_ENV = f'credentials = "env:{CANARY}"'


def told(load: Load, engine: str, lines: str, site: str = "") -> str:
    """The first fault of a site with this table."""
    found = faults(load, with_site(site + "\n" + TABLE.format(engine, lines)))
    return next(f"{field}: {detail}" for field, detail in found.items())


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("ping", "retired"), ("google", "search_console"), ("google_ping", "search_console"),
        ("bing_ping", "indexnow"), ("msn", "indexnow"), ("yahoo", "indexnow"),
        ("ask", "nothing replaces"), ("moreover", "nothing replaces"),
        ("didikle", "nothing replaces"),
        ("naver", "searchadvisor.naver.com/indexnow"), ("Seznam", "search.seznam.cz/indexnow"),
    ],
)  # fmt: skip
def test_retired_pings_are_refused_by_name(load: Load, name: str, instead: str) -> None:
    """PROTOCOL U1, U2."""
    assert instead in told(load, name, "")


@pytest.mark.parametrize(
    ("url", "instead"),
    [
        ("https://www.google.com/ping?sitemap={sitemap}", "search_console"),
        ("https://www.google.de/ping?sitemap={sitemap}", "search_console"),
        ("https://google.com/webmasters/tools/ping?sitemap={sitemap}", "search_console"),
        ("https://www.google.co.uk/webmasters/sitemaps/ping?sitemap={sitemap}", "search_console"),
        ("https://www.bing.com/webmaster/ping.aspx?siteMap={sitemap}", "indexnow"),
        ("http://www.bing.com/ping?sitemap={sitemap}", "indexnow"),
        ("http://webmaster.live.com/ping.aspx?siteMap={sitemap}", "indexnow"),
        ("http://search.yahooapis.com/SiteExplorerService/V1/ping?sitemap={sitemap}", "indexnow"),
        ("http://submissions.ask.com/ping?sitemap={sitemap}", "nothing replaces"),
        ("http://api.moreover.com/ping?u={sitemap}", "nothing replaces"),
        ("http://www.didikle.com/ping?sitemap={sitemap}", "nothing replaces"),
    ],
)
def test_retired_pings_are_refused_by_address(load: Load, url: str, instead: str) -> None:
    """PROTOCOL U1, even where their hosts are allowed."""
    assert instead in told(load, "crawler", f'url = "{url}"\nallow_private = true')


@pytest.mark.parametrize(
    ("engine", "lines", "detail"),
    [
        ("indexnow", "", "Field required"),
        ("indexnow", 'key = "short"', "8 to 128"),
        ("indexnow", f'key = "{"k" * 129}"', "8 to 128"),
        ("indexnow", 'key = "with.a.dot"', "8 to 128"),
        ("indexnow", f'key = "{KEY}"\nendpoints = []', "at least 1"),
        ("indexnow", f'key = "{KEY}"\nendpoints = ["http://api.indexnow.org/indexnow"]', "https"),
        ("indexnow", f'key = "{KEY}"\nendpoints = ["https://evil.example/"]', "notify.hosts"),
        ("indexnow", f'key = "{KEY}"\nendpoints = ["https://a@bing.com/"]', "must be an address"),
        ("indexnow", f'key = "{KEY}"\nendpoints = ["https://bing.com/?x=1"]', "must be an address"),
        ("indexnow", f'key = "{KEY}"\nendpoints = ["ftp://bing.com/"]', "must be an address"),
        ("indexnow", f'key = "{KEY}"\ndaily = 0', "greater than or equal to 1"),
        ("indexnow", f'key = "{KEY}"\nkey_location = "https://www.example.com/k/{KEY}.txt"', "U4"),
        ("indexnow", f'key = "{KEY}"\nkey_location = "https://other.example/k.txt"', "U4"),
        ("indexnow", 'key = "products-1"', "name of a sitemap"),
        ("indexnow", 'key = "products-2025-11-2"', "name of a sitemap"),
        ("indexnow", 'key = "sitemap-2"', "name of a sitemap"),
        ("baidu", f'token = "{CANARY}"', "plain_http = true"),
        ("crawler", 'url = "https://crawler.example/?sitemap={sitemap}"', "notify.hosts"),
        ("crawler", 'url = "https://crawler.example/{sitemap}"', "{sitemap} exactly once"),
        ("crawler", 'url = "https://crawler.example/?a=b"', "{sitemap} exactly once"),
        ("websub", "", "feed = true"),
        ("google_indexing", f'{FROM_ENV}\nsections = {{}}', "at least 1"),
        (
            "google_indexing", f'{FROM_ENV}\nsections = {{ products = "Article" }}',
            "'JobPosting' or 'BroadcastEvent'",
        ),
        (
            "google_indexing", f'{FROM_ENV}\nsections = {{ jobs = "JobPosting" }}',
            "jobs is not a section",
        ),
        ("yandex", f'token = "{CANARY}"\nuser_id = 1\nhost_id = "www.example.com"', "pattern"),
        ("yahooo", "", "not permitted"),
    ],
)  # fmt: skip
def test_what_cannot_be_meant_is_named(load: Load, engine: str, lines: str, detail: str) -> None:
    section = "[sites.demo.sections.products]"

    assert detail in told(load, engine, lines, section)


def test_a_hub_that_is_not_known_is_named_too(load: Load) -> None:
    site = 'feed = true\nhub = "https://hub.evil.example/"'

    assert "hub.evil.example" in told(load, "websub", "", site)


def test_what_was_named_may_be_asked(load: Load) -> None:
    text = with_site(f"""
feed = true
hub = "https://hub.example/"
[sites.demo.notify]
hosts = ["crawler.internal", "hub.example"]
[sites.demo.notify.indexnow]
key = "{KEY}"
[sites.demo.notify.crawler]
url = "http://crawler.internal:8000/?sitemap={{sitemap}}"
allow_private = true
[sites.demo.notify.baidu]
token = "{CANARY}"
plain_http = true
[sites.demo.notify.websub]
""")
    site = load(text).sites["demo"]

    assert list(site.notify.engines) == ["indexnow", "baidu", "websub", "crawler"]
    assert site.notify.allowed == KNOWN_HOSTS | {"crawler.internal", "hub.example"}
    assert CANARY not in repr(site)


def test_every_default_endpoint_is_known_and_over_tls() -> None:
    found = [
        field.default
        for model in (
            engines.BingSettings, engines.YandexSettings, engines.SearchConsoleSettings,
            engines.GoogleIndexingSettings,
        )
        for name, field in model.model_fields.items()
        if "endpoint" in name
    ]  # fmt: skip
    found += engines.IndexNowSettings.model_fields["endpoints"].default

    assert len(found) == 7
    for url in found:
        assert url.startswith("https://")
        assert url.split("/")[2] in KNOWN_HOSTS


def test_credentials_are_given_or_read_from_a_file_or_the_environment(
    tmp_path: Path, environment: MutableMapping[str, str]
) -> None:
    (tmp_path / "key").write_text(f"{CANARY}\n")
    environment["BING_KEY"] = CANARY

    for given in (CANARY, f"file:{tmp_path / 'key'}", "env:BING_KEY"):
        assert secret_of(SecretStr(given)) == CANARY


@pytest.mark.parametrize("given", ["file:/no/such/file", "env:NO_SUCH_NAME", "file:", " "])
def test_credentials_that_are_missing_are_named(given: str) -> None:
    with pytest.raises(CredentialError):
        secret_of(SecretStr(given))


def test_every_field_of_every_engine_is_in_the_first_configuration(tmp_path: Path) -> None:
    """And what is shown there is taken as it stands."""
    path = first_config.write(tmp_path, "https://www.example.com")
    lines = path.read_text().splitlines()
    shown = [line.removeprefix("# ") for line in lines if not line.startswith("#  ")]
    at = next(n for n, line in enumerate(shown) if line == "[sites.demo.notify]")
    given = tomllib.loads("\n".join(shown[at : shown.index("", at)]))
    tables = given["sites"]["demo"]["notify"]

    assert set(tables) == set(NotifySettings.model_fields)
    common = set(engines.EngineSettings.model_fields)
    for name, field in NotifySettings.model_fields.items():
        if name != "hosts":
            (model,) = [m for m in field.annotation.__args__ if m is not type(None)]  # type: ignore[union-attr]
            assert set(model.model_fields) - common <= set(tables[name]), name
    assert common <= set(tables["indexnow"])
    NotifySettings.model_validate(tables)
