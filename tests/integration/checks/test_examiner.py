"""A check is asked for through Redis and done by one worker, or from the command line."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from typer.testing import CliRunner, Result

from deploy.cli.program import app
from shared.config.settings import Settings
from shared.errors import CheckError
from shared.store.operations.checks import CheckBusyError, CheckStore
from tests.integration.checks.examined import WebServer, examine, web_server
from tests.integration.conftest import RedisServer, Wait
from tests.integration.logs import captured, silence
from tests.integration.rig import Rig, check_keys
from worker.checks import examiner
from worker.checks.examination import Examination
from worker.checks.examiner import Examiner
from worker.runtime import Runtime

CONFIG = """
redis_url = "{url}"
[sites.demo]
base_url = "{base}"
web_root = "public"
tokens = ["0123456789abcdef"]
"""
HOUR_MS = 3_600_000
Make = Callable[..., Examiner]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[WebServer, str]]:
    (tmp_path / "public").mkdir()
    with web_server(tmp_path / "public") as server:
        yield server


@pytest.fixture
def rig(store: redis.Redis, tmp_path: Path, server: tuple[WebServer, str]) -> Rig:
    rig = Rig(store, tmp_path / "public", base_url=server[1], shard_urls=2)
    rig.do(*({"type": "upsert", "loc": f"{server[1]}{n}"} for n in range(5)))
    return rig


@pytest.fixture
def checks(rig: Rig) -> CheckStore:
    return CheckStore(rig.client, rig.name)


@pytest.fixture
def settings(rig: Rig, redis_server: RedisServer) -> Callable[..., Settings]:
    def make(**options: Any) -> Settings:
        return Settings(redis_url=redis_server.url, sites=rig.settings.sites, **options)

    return make


@pytest.fixture
def make(rig: Rig, settings: Callable[..., Settings]) -> Make:
    """An examiner whose worker has been there for long."""

    def examiner(hours: float = 0, first_s: float = 0) -> Examiner:
        config = settings(checks_hours=hours)
        return Examiner(config, rig.client, "w1", lambda: False, first_s=first_s)

    return examiner


def test_a_check_that_is_asked_for_is_done_by_a_running_worker(
    rig: Rig, checks: CheckStore, settings: Callable[..., Settings], until: Wait
) -> None:
    plant = Runtime(settings(checks_hours=0), "w1")
    with silence():
        plant.start()
        try:
            checks.ask("an admin")
            until(checks.latest, "the report")
            until(lambda: checks.progress() is None, "its end")
        finally:
            plant.stop()

    report = checks.latest()
    assert report
    assert (report.by, report.pages, report.served) == ("an admin", 5, True)
    assert checks.asked() == {}
    check_keys(rig.client)


def test_who_asks_while_a_check_goes_on_gets_another(
    rig: Rig, checks: CheckStore, make: Make, until: Wait
) -> None:
    checks.ask("one")
    checks.ask("two")
    run = checks.begin("w2")
    assert run.by == "one"
    first = checks.asked()["two"]

    def again() -> bool:
        checks.ask("two")
        return checks.asked()["two"] > first

    until(again, "another millisecond")
    run.store(examine_report(rig))
    run.end()

    assert list(checks.asked()) == ["two"]
    make().look()
    assert checks.asked() == {}


def examine_report(rig: Rig) -> Any:
    """Of another site, so that the lock of this one stays where it is."""
    return examine(Rig(rig.client, rig.root, name="other"))


def test_two_do_not_check_a_site_at_once(checks: CheckStore, make: Make) -> None:
    run = checks.begin("w2")
    checks.ask("an admin")

    make().look()
    with pytest.raises(CheckBusyError, match="w2 is checking this site"):
        checks.begin("w3")

    assert checks.latest() is None
    run.end()
    make().look()
    assert checks.latest()


def test_who_has_lost_the_lock_stops(rig: Rig, checks: CheckStore) -> None:
    """RELIABILITY F14."""
    run = checks.begin("w1")
    run.advance("pages", 1, 5)
    rig.client.delete(rig.keys.checking)
    other = checks.begin("w2")

    with pytest.raises(CheckError):
        run.advance("pages", 2, 5)
    run.end()

    with pytest.raises(CheckBusyError):
        checks.begin("w3")
    other.end()


def test_how_far_it_is_can_be_seen_meanwhile(rig: Rig, checks: CheckStore) -> None:
    seen = []
    Examination(
        rig.client, rig.name, rig.site, "w1", lambda: seen.append(checks.progress())
    ).run(by="an admin")  # fmt: skip

    assert all(each and (each.by, each.owner, each.of) == ("an admin", "w1", 5) for each in seen)
    assert {each.what for each in seen if each} >= {"pages", "files", "served"}
    assert checks.progress() is None


@pytest.mark.parametrize(
    ("hours", "ago", "done"), [(24, 25, True), (24, 23, False), (0, 99, False)]
)
def test_a_check_is_done_by_the_clock(
    rig: Rig, checks: CheckStore, make: Make, hours: float, ago: int, done: bool
) -> None:
    report = examine(rig)
    long_ago = report._replace(began_ms=report.began_ms - ago * HOUR_MS)
    run = checks.begin("w0")
    run.store(long_ago)
    run.end()

    make(hours).look()

    assert (checks.latest() != long_ago) is done


def test_a_worker_that_has_just_started_asks_no_clock(checks: CheckStore, make: Make) -> None:
    make(1, first_s=600).look()

    assert checks.latest() is None


def test_a_check_that_fails_is_told_and_left_alone_for_a_while(
    rig: Rig, checks: CheckStore, make: Make
) -> None:
    rig.client.hset(rig.keys.files("pages"), "1", "no record")
    checks.ask("an admin")
    worker = make()

    with captured(examiner) as logs:
        worker.look()
        worker.look()

    assert [(log["event"], log["loop"]) for log in logs] == [("loop failed", "checks")]
    assert not rig.client.exists(rig.keys.checking)
    assert checks.asked()


def test_the_log_names_what_is_wrong(rig: Rig, checks: CheckStore, make: Make) -> None:
    (rig.root / "pages-2.xml").unlink()
    checks.ask("an admin")

    with captured(examiner) as logs:
        make().look()

    assert logs[0]["log_level"] == "warning"
    assert logs[0]["wrong"] == {"missing-file": 1}


@pytest.fixture
def home(rig: Rig, redis_server: RedisServer, tmp_path: Path) -> Path:
    text = CONFIG.format(url=redis_server.url, base=rig.site.base_url)
    (tmp_path / "sitemapd.toml").write_text(text + "shard_urls = 2\n")
    return tmp_path


def run(home: Path, *arguments: str) -> Result:
    return CliRunner().invoke(app, ["check", *arguments, "--home", str(home)])


def test_the_command_checks_and_exits_with_0_where_nothing_is_wrong(
    home: Path, checks: CheckStore, server: tuple[WebServer, str]
) -> None:
    result = run(home, "--json")

    assert result.exit_code == 0, result.output
    said = json.loads(result.stdout)
    assert (said["pages"], said["severity"]) == (5, "warning")
    assert said == json.loads(json.dumps(getattr(checks.latest(), "plain", dict)()))
    assert "/sitemap.xml" in server[0].asked


def test_the_command_names_what_is_wrong_and_what_to_do(home: Path, rig: Rig) -> None:
    (rig.root / "pages-2.xml").unlink()

    result = run(home)

    assert result.exit_code == 1
    assert "missing-file" in result.stdout
    assert "  pages-2.xml  missing" in result.stdout
    assert "sitemapd rebuild" in result.stdout


def test_the_command_asks_no_web_server_if_told_so(
    home: Path, server: tuple[WebServer, str]
) -> None:
    said = json.loads(run(home, "--json", "--no-served").stdout)

    assert not said["served"]
    assert "served" not in {each["check"] for each in said["findings"]}
    assert server[0].asked == []


def test_the_command_shows_how_the_site_compared(home: Path, rig: Rig) -> None:
    rows = "\n".join(["loc", *(f"{rig.site.base_url}{n}" for n in (0, 1, 2, 3, 7))])
    (home / "pages.csv").write_text(rows + "\n")
    with silence():
        against = ["--against", f"csv:{home}/pages.csv"]
        CliRunner().invoke(app, ["verify", *against, "--home", str(home)])

    result = run(home, "--json")

    found = {each["check"]: each for each in json.loads(result.stdout)["findings"]}
    assert result.exit_code == 1
    assert found["missing"]["samples"][0]["where"] == f"{rig.site.base_url}7"
    assert found["extra"]["samples"][0]["where"] == f"{rig.site.base_url}4"


def test_the_command_does_not_begin_while_a_worker_is_at_it(home: Path, checks: CheckStore) -> None:
    at_it = checks.begin("w1")

    error = run(home).exception

    at_it.end()
    assert isinstance(error, CheckBusyError)
    assert "w1" in str(error)
