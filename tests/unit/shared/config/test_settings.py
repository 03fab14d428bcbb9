"""The configuration is read once, and all of its faults are named at once."""

from __future__ import annotations

from collections.abc import MutableMapping
from pathlib import Path

import pytest

from shared.config import settings
from shared.config.credentials import Secret
from shared.config.settings import Settings
from shared.config.sites.site import SMALLEST_SHARD
from shared.errors import ConfigError
from shared.sitemap.shards import Limits
from tests.unit.configured import CANARY, SITE, Load, faults, with_site


def test_a_site_of_three_lines_is_enough(load: Load, tmp_path: Path) -> None:
    site = load(SITE).sites["demo"]

    assert (site.base_url, site.form, site.robots) == ("https://www.example.com/", "xml", "off")
    assert site.web_root == tmp_path / "public"
    assert site.rules.sections == {"pages"}
    assert site.limits == {"pages": Limits()}
    assert not site.hints


def test_every_fault_is_named_at_once_by_its_place_in_the_file(load: Load) -> None:
    found = faults(
        load,
        """
        linger = -1
        body_limit = "much"
        colour = "red"
        [sites.demo]
        base_url = "www.example.com"
        form = "pdf"
        tokens = ["canary"]
        secrets = ["canary-4f1d-tweet-tweet"]
        shard_urls = 50001
        publish = 1
        [sites.demo.sections.news]
        shard_urls = 0
        [sites.demo.sections.Robots]
        [sites."a/b"]
        """,
    )

    assert {
        "linger", "body_limit", "colour", "sites.demo.base_url", "sites.demo.form",
        "sites.demo.tokens.0", "sites.demo.secrets.0", "sites.demo.shard_urls",
        "sites.demo.publish", "sites.demo.sections.news.shard_urls",
        "sites.demo.sections.Robots", "sites.a/b", "sites.a/b.base_url",
        "sites.a/b.web_root", "sites.demo.web_root",
    } == found.keys()  # fmt: skip


@pytest.mark.parametrize(
    "name", ["sitemap", "robots", "atom", "Posts", "a b", "\u00e9", "", "..", "a" * 33]
)
def test_names_of_other_files_and_of_paths_are_no_sections(load: Load, name: str) -> None:
    found = faults(load, with_site(f'[sites.demo.sections."{name}"]'))

    assert [f"sites.demo.sections.{name}"] == list(found)
    assert "[a-z0-9-]{1,32}" in found[f"sites.demo.sections.{name}"]


@pytest.mark.parametrize("name", ["Demo", "a b", "{x}", "", "..", "a" * 33])
def test_a_site_name_is_safe_in_keys_and_addresses(load: Load, name: str) -> None:
    assert f"sites.{name}" in faults(load, SITE.replace("sites.demo", f'sites."{name}"'))


def test_every_site_writes_into_a_web_root_of_its_own(load: Load, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "public")
    others = {"b": "public", "c": "./x/../public", "d": "link", "e": "elsewhere"}
    sites = [SITE] + [
        SITE.replace("sites.demo", f"sites.{name}").replace('"public"', f'"{place}"')
        for name, place in others.items()
    ]
    found = faults(load, "".join(sites))

    assert list(found) == ["sites.b.web_root", "sites.c.web_root", "sites.d.web_root"]
    assert all("site demo" in detail for detail in found.values())


def test_an_absolute_web_root_stays_as_it_is(load: Load, tmp_path: Path) -> None:
    text = SITE.replace('"public"', f'"{tmp_path / "elsewhere"}"')

    assert load(text).sites["demo"].web_root == tmp_path / "elsewhere"


@pytest.mark.parametrize(
    "url", ["", "www.example.com", "ftp://a.b/", "https://a.b/?x", "https://u:p@a.b/", "https://"]
)
def test_a_base_url_that_no_page_can_lie_below_is_refused(load: Load, url: str) -> None:
    found = faults(load, SITE.replace("https://WWW.example.com:443", url))

    assert list(found) == ["sites.demo.base_url"]


@pytest.mark.parametrize(
    ("line", "good"),
    [
        ("shard_urls = 50_000", True),
        ("shard_urls = 50_001", False),
        ("shard_bytes = 52_428_800", True),
        ("shard_bytes = 52_428_801", False),
        (f"shard_bytes = {SMALLEST_SHARD}", True),
        (f"shard_bytes = {SMALLEST_SHARD - 1}", False),
        ("index_shards = 50_000", True),
        ("index_shards = 50_001", False),
        ("publish_interval = 0", True),
        ("publish_interval = nan", False),
        ("publish_interval = inf", False),
    ],
)
def test_the_limits_of_the_protocol_are_those_of_the_settings(
    load: Load, line: str, good: bool
) -> None:
    """PROTOCOL F7, F8 at their exact boundaries."""
    if good:
        assert load(with_site(line)).sites
    else:
        assert [f"sites.demo.{line.split(maxsplit=1)[0]}"] == list(faults(load, with_site(line)))


def test_each_section_has_its_own_limits_and_news_are_short(load: Load) -> None:
    """PROTOCOL W3: 1,000 URLs of news at most."""
    site = load(
        with_site(
            """
            shard_urls = 2000
            [sites.demo.sections.posts]
            [sites.demo.sections.products]
            shard_urls = 50
            [sites.demo.sections.news]
            news = true
            """
        )
    ).sites["demo"]

    assert {name: limits.urls for name, limits in site.limits.items()} == {
        "pages": 2000,
        "posts": 2000,
        "products": 50,
        "news": 1000,
    }
    assert site.rules.sections == site.limits.keys()


def test_a_news_section_cannot_be_made_longer(load: Load) -> None:
    text = with_site("[sites.demo.sections.news]\nnews = true\nshard_urls = 1001")

    assert list(faults(load, text)) == ["sites.demo.sections.news"]


def test_the_environment_wins_over_the_file(
    load: Load, environment: MutableMapping[str, str]
) -> None:
    text = "linger = 0.5\nbody_limit = 2048\n" + SITE
    environment["SITEMAPD_LINGER"] = "0.25"
    environment["SITEMAPD_REDIS_URL"] = "redis://cache.example/1"
    loaded = load(text)

    assert (loaded.linger, loaded.body_limit) == (0.25, 2_048)
    assert loaded.redis_url == "redis://cache.example/1"


@pytest.mark.parametrize(
    ("name", "value", "field"),
    [
        ("LINGER", "soon", "linger"),
        ("SITES", "{" + CANARY, "environment"),
        ("SITES", f'{{"demo": {{"tokens": ["{CANARY}"]}}}}', "sites.demo.base_url"),
    ],
)
def test_a_fault_in_the_environment_is_reported_like_one_in_the_file(
    load: Load, environment: MutableMapping[str, str], name: str, value: str, field: str
) -> None:
    environment[f"SITEMAPD_{name}"] = value

    assert field in faults(load, SITE)


@pytest.mark.parametrize(
    "text",
    ["sites = [", f'tokens = ["{CANARY}', f"{SITE}{SITE}", f"token = {CANARY}"],
    ids=["cut", "open text", "twice", "no quotes"],
)
def test_a_file_that_is_not_toml_is_refused(load: Load, tmp_path: Path, text: str) -> None:
    found = faults(load, text)

    assert [str(tmp_path / settings.FILE)] == list(found)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"absent\.toml: cannot be read: No such file"):
        settings.load(tmp_path / "absent.toml")


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    path = tmp_path / settings.FILE
    path.write_bytes(b"\xff\xfe\x00")

    with pytest.raises(ConfigError, match="not valid TOML"):
        settings.load(path)


def test_settings_never_change(load: Load) -> None:
    loaded = load(SITE)

    with pytest.raises(ValueError, match="frozen"):
        loaded.linger = 1.0
    with pytest.raises(ValueError, match="frozen"):
        loaded.sites["demo"].hints = True


def test_every_setting_of_the_file_says_what_it_means() -> None:
    fields = Settings.model_fields | Secret.model_fields
    undescribed = {name for name, field in fields.items() if not field.description}

    assert undescribed <= {"sites", "secret"}


def test_what_events_may_say_follows_from_the_site(load: Load) -> None:
    """PROTOCOL F7, L2, N8, W11: news sections, deprecated tags, engines, the smallest file."""
    plain = load(SITE).sites["demo"].rules
    rules = (
        load(
            with_site(
                """
            emit_deprecated = true
            engines = ["yandex", "baidu"]
            shard_bytes = 20_000
            [sites.demo.sections.press]
            news = true
            [sites.demo.sections.posts]
            """
            )
        )
        .sites["demo"]
        .rules
    )

    assert (plain.news, plain.deprecated, plain.engines) == (frozenset(), False, frozenset())
    assert plain.most_bytes == Limits().hard
    assert (rules.news, rules.deprecated, rules.engines) == ({"press"}, True, {"yandex", "baidu"})
    assert rules.most_bytes == Limits(size=20_000).hard
    assert "sites.demo.engines.0" in faults(load, with_site('engines = ["google"]'))
