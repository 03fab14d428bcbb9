"""The commands `verify --against` and `reconcile`: what they say, do and refuse."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import redis
from typer.testing import CliRunner, Result

from deploy.cli.program import app
from deploy.commands.reconcile import KEY_VARIABLE
from deploy.local import inline_worker
from shared.errors import ConfigError, ReconcileError, SitemapdError, SourceError
from shared.store.operations.checks import CheckStore
from shared.store.operations.queues import Queues
from tests.integration.conftest import RedisServer, Unchanged
from tests.integration.logs import silence
from tests.integration.rig import BASE, Rig
from tests.unit.worker.sources.cms import Ghost, served

KEY = "canary-key"
CONFIG = """
redis_url = "{url}"
[sites.demo]
base_url = "{base}"
web_root = "public"
tokens = ["0123456789abcdef"]
publish_interval = 0
{more}
[sites.demo.sections.posts]
"""

Configure = Callable[..., Path]


@pytest.fixture
def rig(store: redis.Redis, tmp_path: Path) -> Rig:
    rig = Rig(store, tmp_path / "public", sections={"posts": {}})
    rig.do(*({"type": "upsert", "loc": f"p/{n}"} for n in range(4)))
    rig.do({"type": "upsert", "loc": "post", "section": "posts"})
    return rig


@pytest.fixture
def configure(redis_server: RedisServer, rig: Rig, tmp_path: Path) -> Configure:
    """Writes the configuration of the rig's site."""

    def write(**settings: str) -> Path:
        more = "\n".join(f"{name} = '{value}'" for name, value in settings.items())
        text = CONFIG.format(url=redis_server.url, base=rig.site.base_url, more=more)
        (tmp_path / "sitemapd.toml").write_text(text)
        return tmp_path

    return write


@pytest.fixture
def home(configure: Configure) -> Path:
    return configure()


def source(home: Path, *paths: str, dates: str = "") -> str:
    rows = [f"{BASE}{path},{dates}" for path in paths]
    (home / "pages.csv").write_text("\n".join(["loc,lastmod", *rows]) + "\n")
    return f"csv:{home}/pages.csv"


ALL = ("p/0", "p/1", "p/2", "p/3", "post")
CHANGED = ("p/0", "p/1", "p/2", "new", "post")


def run(home: Path, *arguments: str, **environment: str) -> Result:
    with silence():
        return CliRunner().invoke(app, [*arguments, "--home", str(home)], env=environment)


def answer(home: Path, *arguments: str) -> tuple[int, dict[str, Any]]:
    result = run(home, *arguments, "--json")
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, json.loads(result.stdout)


def refusal(home: Path, *arguments: str) -> SitemapdError:
    error = run(home, *arguments).exception
    assert isinstance(error, SitemapdError)
    return error


def test_a_long_list_ends_with_its_summary_after_the_first_lines_unless_all_are_wanted(
    home: Path,
) -> None:
    against = source(home, *ALL, *(f"new/{n}" for n in range(50)))

    shown = run(home, "verify", "--against", against).stdout.splitlines()
    whole = run(home, "verify", "--against", against, "--all").stdout.splitlines()

    assert [each.split()[0] for each in shown[:21]] == ["missing"] * 20 + ["and"]
    assert shown[20] == "and 30 more; --all prints them"
    assert [each for each in whole if each not in shown] == whole[20:50]
    assert whole[50:] == shown[21:]
    assert "missing              50" in shown


def test_verify_lists_each_page_that_differs_and_writes_nothing_but_that(
    home: Path, unchanged: Unchanged, rig: Rig
) -> None:
    against = source(home, *CHANGED)

    with unchanged():
        code, said = answer(home, "verify", "--against", against)
        shown = run(home, "verify", "--against", against)
        compared = CheckStore(rig.client, rig.name).compared()
        rig.client.delete(rig.keys.checks)

    assert compared
    assert compared[1:4] == (1, 0, 1)
    assert code == shown.exit_code == 1
    assert (said["missing"], said["stale"], said["extra"]) == (1, 0, 1)
    assert {(page["what"], page["loc"]) for page in said["pages"]} == {
        ("missing", BASE + "new"), ("extra", BASE + "p/3"),
    }  # fmt: skip
    assert f"missing    {BASE}new" in shown.stdout
    assert f"extra      {BASE}p/3" in shown.stdout


def test_verify_of_what_is_equal_is_quiet_and_exits_with_0(home: Path) -> None:
    code, said = answer(home, "verify", "--against", source(home, *ALL))

    assert code == 0
    assert said["equal"]
    assert said["pages"] == []


def test_a_scope_limits_both(home: Path, rig: Rig) -> None:
    against = source(home, "p/0", "p/1", "p/2", "new", dates="2026-01-01")

    _, said = answer(home, "verify", "--against", against, "--section", "posts")
    assert {(page["what"], page["loc"]) for page in said["pages"]} == {("extra", BASE + "post")}
    code, done = answer(home, "reconcile", "--against", against, "--prefix", BASE + "p/")

    assert code == 0
    assert (done["added"], done["changed"], done["deleted"]) == (0, 3, 1)
    assert set(rig.listed()) == {BASE + path for path in ("p/0", "p/1", "p/2", "post")}


def test_reconcile_publishes_what_it_did_and_says_it(home: Path, rig: Rig) -> None:
    code, done = answer(home, "reconcile", "--against", source(home, *CHANGED))

    assert code == 0
    assert (done["added"], done["changed"], done["deleted"]) == (1, 0, 1)
    assert done["complete"]
    assert set(rig.listed()) == {BASE + path for path in CHANGED}


def test_a_reconcile_does_not_wait_for_ever_for_what_is_paused(
    home: Path, rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inline_worker, "STILL_S", 0.5)
    Queues(rig.client, rig.name).pause("events", "ann")

    error = refusal(home, "reconcile", "--against", source(home, *CHANGED))

    assert "sitemapd status --site demo says why" in str(error)
    assert set(rig.listed()) == {BASE + path for path in ALL}
    Queues(rig.client, rig.name).resume("events")
    rig.settle()
    assert set(rig.listed()) == {BASE + path for path in CHANGED}


def test_new_pages_go_where_they_are_told(home: Path, rig: Rig) -> None:
    answer(home, "reconcile", "--against", source(home, *ALL, "new"), "--into", "posts")

    assert f"{BASE}new".encode() in rig.shard_files()["posts-1"]


def test_a_source_with_too_few_pages_needs_a_yes(home: Path, rig: Rig) -> None:
    against = source(home, "p/0")

    assert isinstance(refusal(home, "reconcile", "--against", against), ReconcileError)
    assert len(rig.listed()) == 5
    code, _ = answer(home, "reconcile", "--against", against, "--yes")

    assert code == 0
    assert set(rig.listed()) == {BASE + "p/0"}


def test_a_source_that_is_not_whole_deletes_nothing_and_exits_with_1(home: Path, rig: Rig) -> None:
    against = source(home, *CHANGED)
    with (home / "pages.csv").open("ab") as file:
        file.write(b"\xff\n")

    code, done = answer(home, "reconcile", "--against", against)

    assert code == 1
    assert (done["added"], done["deleted"], done["extra"]) == (1, 0, 1)
    assert "UTF-8" in done["incomplete"]
    assert len(rig.listed()) == 6


def test_status_shows_what_is_open_and_how_to_answer_it(home: Path, rig: Rig) -> None:
    rig.do({"type": "resync", "section": "posts"}, {"type": "resync"})

    shown = run(home, "status").stdout
    assert "section posts" in shown
    assert "sitemapd reconcile --site demo --against SOURCE" in " ".join(shown.split())
    answer(home, "reconcile", "--against", source(home, *ALL))

    assert json.loads(run(home, "status", "--json").stdout)[0]["resync"] == []


def test_the_configured_source_is_read_with_its_key_and_neither_is_shown(
    configure: Configure, rig: Rig
) -> None:
    ghost = Ghost(KEY)
    ghost.rows["posts"] = [{"id": path, "url": BASE + path} for path in CHANGED]
    with served(ghost) as url:
        home = configure(source=f"ghost:{url}/", source_key=KEY)
        verified = run(home, "verify", "--against", "configured")
        done = run(home, "reconcile")
        by_hand = run(home, "verify", "--against", f"ghost:{url}/", **{KEY_VARIABLE: KEY})
        wrong = run(home, "verify", "--against", f"ghost:{url}/", "--key", f"{KEY}-not")

    assert [verified.exit_code, done.exit_code, by_hand.exit_code] == [1, 0, 0]
    assert set(rig.listed()) == {BASE + path for path in CHANGED}
    assert isinstance(wrong.exception, SourceError)
    assert KEY not in verified.output + done.output + by_hand.output + str(wrong.exception)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("reconcile",), "no source is configured"),
        (("verify", "--section", "posts"), "need --against"),
        (("reconcile", "--against", "csv:x", "--section", "shop"), "there are: pages, posts"),
        (("reconcile", "--against", "csv:x", "--into", "shop"), "there are: pages, posts"),
        (("reconcile", "--against", "csv:x", "--prefix", "https://else.example/"), "L5"),
        (
            ("verify", "--against", "csv:x", "--prefix", BASE, "--section", "posts"),
            "not both",
        ),
    ],
)
def test_what_cannot_be_meant_is_a_fault_of_configuration(
    home: Path, arguments: tuple[str, ...], said: str
) -> None:
    error = refusal(home, *arguments)

    assert isinstance(error, ConfigError)
    assert said in str(error)
