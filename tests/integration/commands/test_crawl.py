"""`sitemapd crawl`: real publishes held against logs of the crawlers that came after them."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import redis
from typer.testing import CliRunner, Result

from deploy.cli.output import find
from deploy.cli.program import app
from deploy.commands import crawl as cli_crawl
from shared.crawls.dns import CrawlerVerifier, Resolver
from shared.errors import InvalidError
from shared.store.operations import crawl_report
from shared.store.publishing.publish_times import PublishTimes
from tests.integration.conftest import RedisServer
from tests.integration.rig import BASE, Rig, check_keys
from tests.unit.shared.crawls.crawling import (
    BINGBOT,
    BROWSER,
    GOOGLEBOT,
    GPTBOT,
    caddy,
    combined,
    nginx_json,
)

CONFIG = """
redis_url = "{url}"
[sites.demo]
base_url = "{base}"
web_root = "public"
tokens = ["0123456789abcdef"]
robots = "create"
"""
DAY_MS = 86_400_000


@pytest.fixture
def rig(store: redis.Redis, tmp_path: Path) -> Rig:
    return Rig(store, tmp_path / "public", robots="create")


@pytest.fixture
def home(redis_server: RedisServer, tmp_path: Path) -> Path:
    (tmp_path / "sitemapd.toml").write_text(CONFIG.format(url=redis_server.url, base=BASE))
    return tmp_path


def publish(rig: Rig, *paths: str, **members: Any) -> int:
    """Publish pages; when (ms since 1970), by the store's clock."""
    rig.do(*({"type": "upsert", "loc": path, **members} for path in paths))
    ((ident, fields),) = rig.client.xrevrange(rig.keys.recent, count=1)
    assert b"published" in fields
    return int(ident.partition(b"-")[0])


def run(home: Path, *arguments: str) -> Result:
    return CliRunner().invoke(app, ["crawl", "--home", str(home), *arguments])


def told(home: Path, *logs: Path, more: Sequence[str] = ()) -> dict[str, Any]:
    arguments = [part for log in logs for part in ("--log", str(log))]
    result = run(home, *arguments, *more, "--json")
    assert result.exit_code == 0, result.output
    return dict(json.loads(result.stdout))


def row(report: dict[str, Any], engine: str, kind: str) -> dict[str, Any]:
    (found,) = [each for each in report["engines"] if each["engine"] == engine]
    (row,) = [each for each in found["kinds"] if each["kind"] == kind]
    return dict(row)


def log_of(home: Path, *lines: bytes, name: str = "access.log") -> Path:
    path = home / name
    content = b"".join(lines)
    path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return path


def test_each_engine_is_told_when_it_fetched_what_was_published(rig: Rig, home: Path) -> None:
    at = publish(rig, "a", "b")
    log = log_of(
        home,
        combined(at - 60_000, "/sitemap.xml"),
        combined(at + 5_000, "/sitemap.xml", status=304),
        combined(at + 20_000, "/pages-1.xml", BINGBOT, zone_min=120),
        combined(at + 8_000, "/pages-1.xml", zone_min=-210),  # out of order, and elsewhere
        combined(at + 30_000, "/a"),
        combined(at + 7_000, "/a", BROWSER),
        combined(at + 40_000, "/b", status=500),
        combined(at + 90_000, "/robots.txt"),
        b"Googlebot, broken\n",
    )

    report = told(home, log)

    assert [engine["engine"] for engine in report["engines"]] == ["Googlebot", "Bingbot"]
    for kind, published, fetched, seconds in (
        ("index", 1, 1, 5), ("shards", 1, 1, 8), ("pages", 2, 1, 30), ("robots.txt", 1, 1, 90),
    ):  # fmt: skip
        found = row(report, "Googlebot", kind)
        assert (found["published"], found["fetched"]) == (published, fetched), kind
        # the log cuts off what is below a second
        assert seconds - 1 < found["p50_s"] <= seconds
        assert sum(found["histogram"]) == fetched
    assert 19 < row(report, "Bingbot", "shards")["p50_s"] <= 20
    assert row(report, "Bingbot", "index")["fetched"] == 0
    assert report["engines"][0]["shards"][0]["file"] == "pages-1.xml"
    assert report["log"] | {"lines": 9, "of_engines": 7, "broken": 1} == report["log"]
    assert report["engines"][0]["verified"] == "user agent"


def test_logs_of_all_forms_rotated_and_packed_are_read_together(rig: Rig, home: Path) -> None:
    at = publish(rig, "a")
    logs = [
        log_of(home, combined(at + 60_000, "/pages-1.xml"), name="access.log"),
        log_of(home, combined(at - DAY_MS, "/", BROWSER), combined(at + 50_000, "/pages-1.xml"),
               name="access.log.1.gz"),
        log_of(home, nginx_json(at + 40_250, "/pages-1.xml"), name="nginx.json"),
        log_of(home, caddy(at + 30_500, "/pages-1.xml"),
               caddy(at + 1_000, "/pages-1.xml", host="other.example.com"), name="caddy.json"),
    ]  # fmt: skip

    report = told(home, *logs)
    by_glob = run(home, "--log", *map(str, logs), "--json")

    assert row(report, "Googlebot", "shards")["p50_s"] == 30.5
    assert row(report, "Googlebot", "shards")["fetches"] == 4
    assert report["log"]["other_hosts"] == 1
    assert json.loads(by_glob.stdout)["engines"] == report["engines"]


def test_the_result_is_kept_for_the_console_but_for_single_files(rig: Rig, home: Path) -> None:
    at = publish(rig, "a")

    report = told(home, log_of(home, combined(at - 1_000, "/"), combined(at + 9_000, "/a")))

    kept = crawl_report.load(rig.client, "demo")
    for engine in report["engines"]:
        assert engine.pop("shards")
    assert kept == report
    assert 89 * DAY_MS < rig.client.pttl(rig.keys.crawl) <= 90 * DAY_MS
    check_keys(rig.client)
    assert crawl_report.load(rig.client, "other") is None


def test_publishes_before_the_log_count_only_if_asked_for(rig: Rig, home: Path) -> None:
    at = publish(rig, "a")
    log = log_of(home, combined(at + 60_000, "/a"))

    report = told(home, log)
    asked = told(home, log, more=["--since", "2020-01-01"])
    late = told(home, log, more=["--since", "2199-01-01"])

    assert row(report, "Googlebot", "pages")["published"] == 0
    assert report["counted"]["publishes_before"] == 4  # page, file, index and robots.txt
    assert row(asked, "Googlebot", "pages")["fetched"] == 1
    assert late["engines"] == []
    assert "--since includes them" in " ".join(run(home, "--log", str(log)).stdout.split())


def test_whoever_only_says_to_be_a_crawler_is_counted_apart(rig: Rig, home: Path) -> None:
    at = publish(rig, "a")
    log = log_of(
        home,
        combined(at - 1_000, "/", BROWSER),
        combined(at + 3_000, "/a", address="203.0.113.1"),
        combined(at + 5_000, "/a", address="203.0.113.2"),
        combined(at + 9_000, "/a", address="66.249.66.1"),
        combined(at + 4_000, "/a", GPTBOT, address="203.0.113.1"),
    )

    def names(address: str) -> Sequence[str]:
        if address == "203.0.113.2":
            raise OSError("no server answers")
        return ["crawl-66-249-66-1.googlebot.com"]

    def addresses(name: str) -> Sequence[str]:
        return {"crawl-66-249-66-1.googlebot.com": ["66.249.66.1"]}[name]

    report, _ = cli_crawl.read(
        find(home), [log], verifier=CrawlerVerifier(Resolver(names, addresses))
    )
    unasked, _ = cli_crawl.read(find(home), [log])

    (google,) = [each for each in report["engines"] if each["engine"] == "Googlebot"]
    assert google["verified"] == "dns"
    assert (google["genuine"], google["fake"], google["unanswered"]) == (1, 1, 1)
    assert 8 < row(report, "Googlebot", "pages")["p50_s"] <= 9
    assert row(report, "Googlebot", "pages")["fetches"] == 1
    assert row(report, "GPTBot", "pages")["fetched"] == 1
    (gpt,) = [each for each in report["engines"] if each["engine"] == "GPTBot"]
    assert gpt["verified"] == "user agent"
    assert gpt["addresses"] == "https://openai.com/gptbot.json"
    assert 2 < row(unasked, "Googlebot", "pages")["p50_s"] <= 3


def test_addresses_that_no_crawler_has_are_told_to_people_as_fakes(rig: Rig, home: Path) -> None:
    """The system's own resolver is asked; 127.0.0.1 is no crawler's, whether it has a name or not.

    Nothing could be verified then, which may as well be the fault of the resolver.
    """
    at = publish(rig, "a")
    lines = [
        combined(at + 9_000, "/a", agent, address="127.0.0.1") for agent in (GOOGLEBOT, GPTBOT)
    ]
    log = log_of(home, combined(at - 1_000, "/", BROWSER), *lines)

    said = " ".join(run(home, "--log", str(log), "--verify-dns").stdout.split())

    assert "Googlebot: 1 fetches by others under its name" in said
    assert "no crawler could be verified" in said
    assert "by user agent only, because DNS cannot verify them: GPTBot" in said


def test_what_is_shown_to_people_says_the_same(rig: Rig, home: Path) -> None:
    at = publish(rig, "a")
    log = log_of(
        home, combined(at - 1_000, "/", BROWSER), combined(at + 400_000, "/pages-1.xml"),
        combined(at + 400_000, "/a"),
    )  # fmt: skip

    result = run(home, "--log", str(log))

    assert result.exit_code == 0
    shown = [line.split() for line in result.stdout.splitlines()]
    for what in ("shards", "pages", "pages-1.xml"):
        (line,) = [line for line in shown if line[:2] == ["Googlebot", what]]
        assert line[2:9] == ["1", "of", "1", "6.7", "min", "6.7", "min"]


def test_a_log_without_user_agents_is_named_as_such(rig: Rig, home: Path) -> None:
    at = publish(rig, "a")
    log = log_of(home, combined(at + 1_000, "/a", "-"))

    assert "does the log have user agents" in run(home, "--log", str(log)).stdout


def test_what_is_no_access_log_is_refused_and_keeps_the_last_result(rig: Rig, home: Path) -> None:
    at = publish(rig, "a")
    told(home, log_of(home, combined(at + 1_000, "/a")))
    before = crawl_report.load(rig.client, "demo")

    error = run(home, "--log", str(log_of(home, b"no log\n" * 3, name="else"))).exception

    assert isinstance(error, InvalidError)
    assert "none of 3 lines is an access log entry" in str(error)
    assert crawl_report.load(rig.client, "demo") == before


def test_a_log_that_is_cut_short_counts_as_far_as_it_goes(rig: Rig, home: Path) -> None:
    at = publish(rig, "a")
    whole = log_of(home, combined(at - 1_000, "/"), combined(at + 9_000, "/a"), name="access.gz")
    whole.write_bytes(whole.read_bytes()[:-6])
    result = run(home, "--log", str(whole), "--json")

    assert result.exit_code == 1
    report = json.loads(result.stdout)
    assert "access.gz" in report["log"]["cut_short"][0]
    assert row(report, "Googlebot", "pages")["fetched"] == 1


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--log", "missing"], "does not exist"),
        (["--log", __file__, "missing"], "does not exist"),
        (["--log", "."], "is a directory"),
        (["--log", __file__, "--since", "soon"], "YYYY-MM-DD"),
        ([], "Missing option"),
    ],
)
def test_a_wrong_call_is_told_why(home: Path, arguments: list[str], why: str) -> None:
    result = run(home, *arguments)

    assert result.exit_code == 2
    assert why in result.output


@pytest.mark.parametrize(
    ("form", "name"),
    [("xml", "pages-1.xml"), ("xml.gz", "pages-1.xml.gz"), ("encoded", "pages-1.xml"),
     ("txt", "pages-1.txt"), ("txt.gz", "pages-1.txt.gz")],
)  # fmt: skip
def test_files_are_published_under_the_names_that_crawlers_ask_for(
    store: redis.Redis, tmp_path: Path, form: str, name: str
) -> None:
    rig = Rig(store, tmp_path / "public", form=form, feed=True)
    at = publish(rig, "a")

    found = set(PublishTimes(store, "demo", rig.site).files())

    assert found == {(BASE + of, at) for of in (name, "sitemap.xml", "atom.xml", "rss.xml")}


def test_pages_count_when_they_are_added_or_changed_and_not_when_they_go(rig: Rig) -> None:
    added = publish(rig, "a", "b", lastmod="2026-01-01")
    rig.do({"type": "upsert", "loc": "a", "lastmod": "2026-01-01"})  # nothing changes
    changed = publish(rig, "b", lastmod="2026-01-02")
    rig.do({"type": "delete", "loc": "a"})
    rig.do({"type": "upsert", "loc": "b", "noindex": True})

    found = sorted(PublishTimes(rig.client, "demo", rig.site).changes())

    assert found == [(BASE + "a", added), (BASE + "b", added), (BASE + "b", changed)]


def test_a_page_under_its_new_address_counts(rig: Rig) -> None:
    publish(rig, "old", id="7")
    moved = publish(rig, "new", id="7")

    found = dict(PublishTimes(rig.client, "demo", rig.site).changes())

    assert found[BASE + "new"] == moved


def test_all_that_is_remembered_is_read(rig: Rig) -> None:
    times = {f"{BASE}p/{n}": publish(rig, f"p/{n}") for n in range(130)}

    published = PublishTimes(rig.client, "demo", rig.site)

    assert dict(published.changes()) == times
    assert rig.client.xlen(rig.keys.recent) > 200
    files = [at for url, at in published.files() if url == BASE + "pages-1.xml"]
    assert files == [*times.values()]
