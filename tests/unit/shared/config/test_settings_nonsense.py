"""Every address, path and name of the configuration, held against what nobody can mean by it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.configured import SITE, Load, faults, with_site

NO_URL = (
    "garbage", "//www.example.com/", "amqp://broker/", "https://", "https://h:99999/",
          "https://user:pw@host/", "https://a b/", "https://h/\\u0000", "javascript:alert(1)",
          "https://ho\\nst/")  # fmt: skip
NO_REDIS = (
    "garbage", "amqp://host//", "sentinel://host:26379/0", "redis+sentinel://h",
    "sqs://", "memory://", "http://host:6379", "redis://", "redis://h:0", "redis://h:65536",
    "redis://h:port", "redis://h/db", "redis://h/0/1", "redis://[::1", "redis://h/0#1",
    "redis:///0", "unix://", "unix://run/redis.sock", "unix:relative.sock", "unix:///",
    "redis://h?decode_responses=1", "redis://h?socket_timeout=99", "redis://h?nonsense=1",
    "redis://h?health_check_interval=often", "rediss://h?ssl_cert_reqs=maybe", "redis://h\\u0000",
    "redis://a b", " redis://h", "localhost:6379", "h1,h2",
)  # fmt: skip
NO_WEB_ROOT = (
    "", ".", "..", "/", "./public/..", "s3://bucket", "gs://bucket/x", "file:///srv/www",
    "https://www.example.com/", "s3:bucket", "~/public", "~www/public", "a\\u0000b", "a file",
    "a file/below", "sitemapd.toml", "a\\nb",
)  # fmt: skip
NO_HOST = ("https://host", "host/path", "host:443", "a b", "", "*", "-", "user@host")
NO_SOURCE = (
    "amqp://h/x", "wordpress:garbage", "wordpress:https://", "ghost:www.example.com",
    "wordpress:https://h:99999/", "sql:garbage", "sql:https//h", "sitemap:s3://bucket/x.xml",
    "s3://bucket/sitemap.xml", "csv:https://h/pages.csv", "ndjson:s3://b/x", "sitemap:", "csv:",
    "sitemap:https://", "sitemap:https://a b/", "https://h:port/sitemap.xml",
)  # fmt: skip
PATH_PATTERNS = ("blog/*", "https://www.example.com/blog/*", "", " /x")

ENGINE = {
    "indexnow": 'key = "0123456789abcdef"', "bing": 'key = "a-key-of-bing"',
    "yandex": 'token = "t"\nuser_id = 7\nhost_id = "https:www.example.com:443"',
    "baidu": 'token = "t"\nplain_http = true', "crawler": 'url = "https://c.example/?s={sitemap}"',
    "search_console": 'credentials = "file:/key.json"',
    "google_indexing": 'credentials = "env:KEY"\nsections = { jobs = "JobPosting" }',
}  # fmt: skip


def engine(name: str, field: str, value: str) -> str:
    """The table of a search engine in which `field` is `value`."""
    lines = [line for line in ENGINE[name].splitlines() if not line.startswith(f"{field} =")]
    return "\n".join([f"[sites.demo.notify.{name}]", *lines, f"{field} = {value}"])


CASES: dict[str, tuple[tuple[str, ...], str]] = {
    "sites.demo.base_url": (("", "ftp://h/", "https://h/?q", "https://h/#f", *NO_URL), "base_url"),
    "sites.demo.web_root": (NO_WEB_ROOT, "web_root"),
    "sites.demo.hub": (NO_URL, "hub"),
    "sites.demo.source": (NO_SOURCE, "source"),
    "console.origin": (("", "https://h/admin", "http://h", *NO_URL), "[console]\norigin"),
    "sites.demo.notify.hosts": (NO_HOST, "[sites.demo.notify]\nhosts"),
    "sites.demo.sections.blog.paths": (PATH_PATTERNS, "[sites.demo.sections.blog]\npaths"),
    "sites.demo.sections.blog.languages": (
        ("", "klingon language", "e", "en_US", "*"), "[sites.demo.sections.blog]\nlanguages",
    ),
}  # fmt: skip
LISTS = {"hosts", "paths", "languages"}
ENGINE_FIELDS = {
    "indexnow": ("key_location", "endpoints"), "bing": ("endpoint", "site"),
    "yandex": ("endpoint", "host_id"), "baidu": ("endpoint", "site"), "crawler": ("url",),
    "search_console": ("endpoint", "token_endpoint", "property", "credentials"),
    "google_indexing": ("endpoint", "token_endpoint", "credentials"),
}  # fmt: skip


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "a file").write_text("")
    return tmp_path


@pytest.mark.parametrize(
    ("field", "value"), [(field, value) for field, (each, _) in CASES.items() for value in each]
)
@pytest.mark.usefixtures("home")
def test_what_nobody_can_mean_is_named_by_its_field(load: Load, field: str, value: str) -> None:
    name = CASES[field][1]
    last = field.rpartition(".")[2]
    line = f'{name} = ["{value}"]' if last in LISTS else f'{name} = "{value}"'
    site = "\n".join(each for each in SITE.splitlines() if not each.startswith(f"{last} ="))
    text = f"{site}\n{line}\n"

    found = faults(load, text)

    assert any(_about(field, each, detail) for each, detail in found.items()), found


def _about(field: str, place: str, detail: str) -> bool:
    """Whether a fault is about the field, by its place or by its first words."""
    said = f"{place}.{detail}"
    return said.startswith((field, field.rpartition(".")[0] + "." + field.rpartition(".")[2]))


@pytest.mark.parametrize("value", ["https://h/?q", "https://h/#f", *NO_URL])
def test_a_public_url_that_no_path_can_be_added_to_is_refused(load: Load, value: str) -> None:
    assert list(faults(load, f'public_url = "{value}"\n{SITE}')) == ["public_url"]


@pytest.mark.parametrize("value", NO_REDIS)
def test_an_address_that_is_none_of_a_redis_is_refused_with_what_is_allowed(
    load: Load, value: str
) -> None:
    found = faults(load, f'redis_url = "{value}"\n{SITE}')

    assert list(found) == ["redis_url"]
    assert found["redis_url"]


@pytest.mark.parametrize(
    "value",
    [
        "", "redis://localhost", "redis://localhost:6379/0", "redis://:pw@h:6379/15",
        "rediss://user:pw@redis.example.com:6380/1?ssl_cert_reqs=required", "redis://[::1]:6379/",
        "redis://h?db=3", "redis://h?client_name=sitemapd&health_check_interval=30",
        "unix:///run/redis/redis.sock", "unix://user:pw@/run/redis.sock?db=2",
        "redis+sentinel://h1:26379,h2/mymaster/0", "redis+sentinel://u:pw@h/mymaster?sentinel_password=x",
        "rediss+sentinel://h1,[::1]:26379/m/1?ssl_ca_certs=/etc/ca.pem", "redis+cluster://h1:7000,h2",
        "rediss+cluster://u:pw@h1:7000/?ssl_cert_reqs=required",
    ],
)  # fmt: skip
def test_every_address_of_a_redis_is_taken_as_it_is(load: Load, value: str) -> None:
    broker = 'broker_url = "amqp://h"'  # which a cluster needs

    assert load(f'redis_url = "{value}"\n{broker}\n{SITE}').redis_url == value


@pytest.mark.parametrize("scheme", ["amqp", "sentinel", "garbage"])
def test_the_fault_of_redis_url_says_what_to_write(load: Load, scheme: str) -> None:
    said = faults(load, f'redis_url = "{scheme}://h"\n{SITE}')["redis_url"]

    assert "redis://" in said
    assert "unix:///" in said
    assert "redis+sentinel://HOST:26379,HOST:26379/MASTER/0" in said
    assert "redis+cluster://HOST:6379,HOST:6379" in said


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("redis+sentinel://h1,h2", "must name the master"),
        ("redis+sentinel://h1,h2/0/m/", "must name the master"),
        ("redis+cluster://h1/1", "a cluster has only number 0"),
        ("redis+cluster://h1?sentinel_password=x", "sentinel_password: not supported"),
        ("redis+cluster://h1,,h2", "must be redis://"),
        ("redis+sentinel://h1:0/m", "must be redis://"),
    ],
)
def test_a_wrong_address_of_several_servers_says_what_is_wrong(
    load: Load, value: str, said: str
) -> None:
    assert said in faults(load, f'redis_url = "{value}"\n{SITE}')["redis_url"]


@pytest.mark.parametrize(
    ("name", "field", "value"),
    [
        (name, field, value)
        for name, fields in ENGINE_FIELDS.items()
        for field in fields
        for value in (*NO_URL, "s3://bucket")
    ],
)
def test_no_engine_has_an_address_that_is_none(
    load: Load, name: str, field: str, value: str
) -> None:
    text = f'["{value}"]' if field == "endpoints" else f'"{value}"'
    sections = "[sites.demo.sections.jobs]\n" if name == "google_indexing" else ""

    found = faults(load, with_site(sections + engine(name, field, text)))

    assert any(place.startswith(f"sites.demo.notify.{name}.{field}") for place in found), found


@pytest.mark.parametrize("name", ENGINE)
def test_the_engines_of_these_tests_are_right_without_it(load: Load, name: str) -> None:
    sections = "[sites.demo.sections.jobs]\n" if name == "google_indexing" else ""
    hosts = '[sites.demo.notify]\nhosts = ["c.example"]\n'

    assert load(with_site(hosts + sections + engine(name, "daily", "9")))


@pytest.mark.parametrize("field", ["topics", "hub", "callback"])
@pytest.mark.parametrize("value", NO_URL)
def test_no_subscription_has_an_address_that_is_none(load: Load, field: str, value: str) -> None:
    lines = {
        "secret": '"0123456789abcdef"', "topics": '["https://other.example.com/feed"]',
        field: f'["{value}"]' if field == "topics" else f'"{value}"',
    }  # fmt: skip
    table = "\n".join(f"{name} = {given}" for name, given in lines.items())

    found = faults(load, with_site(f"[sites.demo.sources.websub]\n{table}"))

    assert any(place.startswith(f"sites.demo.sources.websub.{field}") for place in found), found


@pytest.mark.parametrize(
    "value", ["garbage", "amqp://broker/", "https://other.example.com/{slug}", "slug", "/{"]
)
def test_no_permalink_leads_elsewhere(load: Load, value: str) -> None:
    table = f'secret = "0123456789abcdef"\npermalinks = {{ post = "{value}" }}'

    found = faults(load, with_site(f"[sites.demo.sources.ghost]\n{table}"))

    assert any("permalinks" in f"{place}.{detail}" for place, detail in found.items()), found


def test_all_of_it_is_named_at_once(load: Load, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    found = faults(
        load,
        """
        redis_url = "amqp://h"
        [sites.a]
        base_url = "garbage"
        web_root = "s3://bucket"
        tokens = ["canary-4f1d-tweet-tweet"]
        [sites.b]
        base_url = "https://b.example.com"
        web_root = "file"
        index = false
        source = "amqp://h"
        [sites.b.sources.ghost]
        secret = "0123456789abcdef"
        permalinks = { post = "https://c.example.com/{slug}" }
        [sites.c]
        base_url = "https://c.example.com"
        web_root = "file"
        tokens = ["canary-4f1d-tweet-tweet"]
        """,
    )

    assert {
        "redis_url", "sites.a.base_url", "sites.a.web_root", "sites.b.web_root", "sites.b.index",
        "sites.b.source", "sites.b.sources.ghost.permalinks.post", "sites.b.tokens",
        "sites.c.web_root",
    } <= found.keys()  # fmt: skip
