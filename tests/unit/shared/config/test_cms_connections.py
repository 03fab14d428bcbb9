"""The settings of a connection: what is taken, and what an administrator is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from shared.config.settings import load
from shared.config.sites.cms_connections import SOURCES
from shared.errors import ConfigError
from webhook.sources.registry import REGISTRY

HEAD = """\
[sites.demo]
base_url = "https://www.example.com"
web_root = "public"
tokens = ["a-token-of-the-site"]
[sites.demo.sections.posts]
"""
SECRET = 'secret = "a-secret-of-the-connection"\n'
WEBSUB = "[sites.demo.sources.websub]\n" + SECRET
FEED = WEBSUB + 'topics = ["https://www.example.com/feed.atom?a=b"]\n'


def loaded(tmp_path: Path, text: str):
    path = tmp_path / "sitemapd.toml"
    path.write_text(HEAD + text)
    return load(path).sites["demo"]


def test_the_names_in_the_configuration_are_those_of_the_adapters():
    assert set(SOURCES) == set(REGISTRY)


def test_a_connection_is_read(tmp_path):
    found = loaded(tmp_path, f"""\
[sites.demo.sources.strapi]
{SECRET}permalinks = {{ article = "/{{locale}}/blog/{{slug}}", "article:en" = "/blog/{{slug}}" }}
sections = {{ article = "posts" }}
ignore = ["author"]
""").sources["strapi"]  # fmt: skip

    assert found.secrets() == [b"a-secret-of-the-connection"]
    assert found.template("article", "de") == "/{locale}/blog/{slug}"
    assert found.template("article", "en") == "/blog/{slug}"
    assert found.template("author") is None
    assert "a-secret" not in repr(found)


def test_a_subscription_to_a_feed_is_read(tmp_path):
    """A known hub, and one that is named."""
    for more in ('hub = "https://pubsubhubbub.appspot.com/"', 'hub = "https://hub.example/"'):
        hosts = '[sites.demo.notify]\nhosts = ["hub.example"]\n'
        found = loaded(tmp_path, f"{FEED}{more}\n{hosts}").sources["websub"]

        assert found.topics == ("https://www.example.com/feed.atom?a=b",)


def test_several_secrets_may_be_given_for_rotation(tmp_path):
    text = '[sites.demo.sources.ghost]\nsecret = ["one-secret-of-ghost", "two-secrets-of-ghost"]\n'

    assert len(loaded(tmp_path, text).sources["ghost"].secret) == 2


@pytest.mark.parametrize(
    ("text", "field", "detail"),
    [
        ("[sites.demo.sources.gohst]\n" + SECRET, "sources.gohst", "supported: cloudevents"),
        ("[sites.demo.sources.ghost]\n", "sites.demo", "sources.ghost.secret: is missing"),
        ('[sites.demo.sources.ghost]\nsecret = "short"\n', "secret", "16 printable"),
        ('[sites.demo.sources.ghost]\nsecret = ""\n', "secret", "16 printable"),
        ("[sites.demo.sources.ghost]\nsecrets = []\n" + SECRET, "secrets", "not permitted"),
        (
            '[sites.demo.sources.wordpress]\nsecret = "not-a-standard-secret"\n',
            "sites.demo", "must be whsec_",
        ),
        (
            "[sites.demo.sources.ghost]\n" + SECRET + 'permalinks = { post = "blog" }\n',
            "permalinks.post", "must begin with /",
        ),
        (
            "[sites.demo.sources.ghost]\n" + SECRET + 'sections = { post = "nowhere" }\n',
            "sites.demo", "nowhere is not a section",
        ),
        (
            '[sites.demo.sources.strapi]\nsecret = "a pass phrase of words"\n',
            "sites.demo", "must not contain spaces",
        ),
        ("[sites.demo.sources.contentful]\n" + SECRET, "sites.demo", "must list every language"),
        ("[sites.demo.sources.websub]\n" + SECRET, "sites.demo",
            "websub.topics: must list the feeds"),
        (WEBSUB + 'topics = ["http://x.example/f"]\n', "sites.demo", "or set allow_private = true"),
        (WEBSUB + 'topics = ["/feed"]\n', "topics", ""),
        (FEED + 'hub = "https://hub.example/"\n', "sites.demo", "add it to notify.hosts"),
        (FEED + 'callback = "https://a.example/b"\n', "callback", "must be an origin"),
        (
            "[sites.demo.sources.ghost]\n" + SECRET + 'topics = ["https://x.example/"]\n',
            "sites.demo", "only sources.websub supports it",
        ),
        (
            "[sites.demo.sources.github]\n" + SECRET + 'permalinks = { "{a" = "/x" }\n',
            "sites.demo", "write {name}",
        ),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(tmp_path, text, field, detail):
    with pytest.raises(ConfigError) as caught:
        loaded(tmp_path, text)

    (fault,) = caught.value.faults
    assert field in fault.field
    assert detail in f"{fault.field}: {fault.detail}"
    assert "a-secret" not in str(caught.value)
