"""The commands for administrators: what they print, ask, save and record."""

from __future__ import annotations

import json
import shlex
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
import redis
import typer
from typer.testing import CliRunner, Result

from deploy.cli.program import app
from shared.admin.dead_letters import DeadLetterActions, DeadLetterFilter
from shared.admin.events import EventActions
from shared.admin.queues import QueueActions
from shared.admin.rollback import Rollback
from shared.errors import SitemapdError
from shared.sitemap.shards import Shard
from shared.store.operations.audit_log import AuditEntry, AuditLog
from tests.integration.conftest import RedisServer, Wait
from tests.integration.logs import silence
from tests.integration.rig import BASE, Rig, check_keys

CONFIG = """
redis_url = "{url}"
[sites.demo]
base_url = "{base}"
web_root = "public"
tokens = ["canary-token-canary"]
publish_interval = 0
"""


@pytest.fixture
def rig(store: redis.Redis, tmp_path: Path) -> Rig:
    rig = Rig(store, tmp_path / "public")
    rig.do(*({"type": "upsert", "loc": f"p/{n}", "id": n} for n in range(3)))
    return rig


@pytest.fixture
def home(redis_server: RedisServer, rig: Rig, tmp_path: Path) -> Path:
    text = CONFIG.format(url=redis_server.url, base=rig.site.base_url)
    (tmp_path / "sitemapd.toml").write_text(text)
    return tmp_path


def run(home: Path, *arguments: str, given: str = "") -> Result:
    with silence():
        return CliRunner().invoke(app, [*arguments, "--home", str(home)], input=given)


def answer(home: Path, *arguments: str) -> Any:
    result = run(home, *arguments, "--json")
    assert result.exit_code == 0, (result.output, result.exception)
    return json.loads(result.stdout)


def fails(home: Path, *arguments: str) -> SitemapdError:
    """The error that a command ends with; `main` makes one line of it."""
    error = run(home, *arguments).exception
    assert isinstance(error, SitemapdError), error
    return error


def audited(store: redis.Redis) -> list[AuditEntry]:
    return AuditLog(store).read()[::-1]


def bury(rig: Rig, error: str, loc: str) -> None:
    (ident,) = rig.send({"type": "upsert", "loc": loc})
    rig.inbox.read("w1", 1)
    rig.inbox.dead_letter(ident, error, 5)


def test_a_queue_is_paused_shown_and_resumed_and_each_is_recorded_once(
    home: Path, rig: Rig, store: redis.Redis
) -> None:
    rig.send({"type": "upsert", "loc": "x"})
    assert "paused: events are accepted and wait" in run(home, "queue", "pause").stdout
    listed = run(home, "queue", "list")
    rows = answer(home, "queue", "list")
    assert "resumed" in run(home, "queue", "resume", "events").stdout

    assert "events" in listed.stdout
    assert "by cli:" in listed.stdout
    assert "sitemapd queue resume events --site demo" in listed.stderr
    assert [row["queue"] for row in rows] == ["intake", "events", "publish", "notify"]
    assert (rows[1]["waiting"], rows[1]["paused"]["by"][:4]) == (1, "cli:")
    entries = audited(store)
    assert [(e.action, e.subject, e.way, e.site) for e in entries] == [
        ("queue pause", "events", "cli", "demo"), ("queue resume", "events", "cli", "demo"),
    ]  # fmt: skip
    assert "there are: events" in str(fails(home, "queue", "pause", "nothing"))
    assert audited(store)[-1].done is False
    check_keys(store)


def test_the_former_name_of_the_intake_is_taken_with_a_warning(
    home: Path, rig: Rig, store: redis.Redis
) -> None:
    """On the command line, and in the state that an earlier version left."""
    store.hset(rig.keys.paused, "door", "1 me")

    assert rig.inbox.accept([rig.parse({"type": "delete", "loc": f"{BASE}x"})]).status == "closed"
    assert answer(home, "queue", "list")[0]["paused"]["by"] == "me"
    resumed = run(home, "queue", "resume", "door")

    assert "`door` is called `intake` now" in resumed.stderr
    assert not store.exists(rig.keys.paused)


def test_a_drain_waits_until_all_is_published_and_leaves_the_intake_closed(
    home: Path, rig: Rig, store: redis.Redis
) -> None:
    rig.send(*({"type": "upsert", "loc": f"new/{n}"} for n in range(50)))
    worker = threading.Thread(target=rig.settle)
    worker.start()
    result = run(home, "queue", "drain")
    worker.join()

    assert result.exit_code == 0
    assert rig.quiet()
    assert len(rig.listed()) == 53
    assert "it stays so until: sitemapd queue resume intake --site demo" in result.stdout
    assert "intake" in QueueActions(store, "demo")._queues.paused()


def test_a_drain_that_is_interrupted_leaves_the_intake_closed_and_says_so(
    home: Path, rig: Rig, until: Wait
) -> None:
    rig.send({"type": "upsert", "loc": "waits"})
    process = subprocess.Popen(
        [Path(sys.executable).with_name("sitemapd"), "queue", "drain", "--home", home],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    until(lambda: rig.client.hexists(rig.keys.paused, "intake"), "the intake is closed")
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=30)

    assert process.returncode == 130
    assert "sitemapd queue resume intake --site demo" in said
    assert rig.client.hexists(rig.keys.paused, "intake")
    assert rig.inbox.waiting() == 1


def test_a_purge_asks_with_the_count_and_saves_what_can_be_put_back(
    home: Path, rig: Rig, store: redis.Redis, tmp_path: Path
) -> None:
    rig.send({"type": "upsert", "loc": "a"}, {"type": "delete", "id": "0"})
    file = tmp_path / "saved.ndjson"
    refused = run(home, "queue", "purge", "--save", str(file), given="n\n")
    assert refused.exit_code == 1
    assert "Remove 2 events of demo?" in refused.output
    assert (rig.inbox.waiting(), file.exists()) == (2, False)

    done = run(home, "queue", "purge", "--save", str(file), given="y\n")

    assert done.exit_code == 0
    assert (file.stat().st_mode & 0o777, rig.inbox.waiting()) == (0o600, 0)
    assert [json.loads(line)["type"] for line in file.read_text().splitlines()] == [
        "upsert", "delete",
    ]  # fmt: skip
    (kept,) = answer(home, "queue", "purges")
    assert kept["events"] == 2
    again = tmp_path / "again.ndjson"
    answer(home, "queue", "purges", kept["purge"], "--save", str(again))
    assert again.read_bytes() == file.read_bytes()
    put_back = next(line for line in done.stdout.splitlines() if line.startswith("to restore them"))
    words = shlex.split(put_back.partition(": sitemapd ")[2])
    assert "2 events accepted again" in run(home, *words, "--yes").stdout
    rig.settle()
    assert set(rig.listed()) == {f"{BASE}{page}" for page in ("a", "p/1", "p/2")}
    assert [each.action for each in audited(store)] == ["queue purge", "event replay"]


def test_nothing_is_taken_out_before_it_is_sure_where_it_is_saved(
    home: Path, rig: Rig, tmp_path: Path
) -> None:
    rig.send({"type": "upsert", "loc": "a"})
    there = tmp_path / "there"
    there.write_text("mine")

    assert "File exists" in str(fails(home, "queue", "purge", "--yes", "--save", str(there)))
    assert "No such file" in str(fails(home, "queue", "purge", "--yes", "--save", "/no/where"))
    assert (there.read_text(), rig.inbox.waiting()) == ("mine", 1)


def test_failed_events_are_listed_shown_retried_and_discarded(
    home: Path, rig: Rig, store: redis.Redis, tmp_path: Path
) -> None:
    bury(rig, "KeyError: it's", "a")
    bury(rig, "KeyError: it's", "b")
    bury(rig, "OSError: full", "c")
    listed = run(home, "dead", "list")
    assert "2  KeyError: it's" in listed.stdout
    assert [group["events"] for group in answer(home, "dead", "list")] == [2, 1]
    letters = answer(home, "dead", "list", "--error", "KeyError: it's")
    shown = run(home, "dead", "show", letters[0]["id"]).stdout
    assert "curl -sS https://www.example.com/v1/sites/demo/events" in shown
    assert "canary" not in shown

    file = tmp_path / "dead.ndjson"
    one = ("dead", "discard", letters[0]["id"], "--save", str(file))
    assert run(home, *one, given="n\n").exit_code == 1
    assert run(home, *one, "--yes").exit_code == 0
    line = next(each for each in listed.stderr.splitlines() if "KeyError" in each)
    words = shlex.split(line.partition("sitemapd ")[2])
    assert answer(home, *words)["number"] == 1
    assert answer(home, "dead", "retry", "--all")["number"] == 1
    rig.settle()

    assert json.loads(file.read_text())["loc"] == f"{BASE}a"
    assert set(rig.listed()) == {f"{BASE}{page}" for page in ("p/0", "p/1", "p/2", "b", "c")}
    assert [each.action for each in audited(store)] == ["dead discard", "dead retry", "dead retry"]
    assert "give ids, or --error TEXT, or --all" in str(fails(home, "dead", "retry"))


def test_what_a_sender_chose_commands_no_terminal(home: Path, rig: Rig) -> None:
    """RELIABILITY T28, for those who look in a terminal."""
    hostile = "\x1b]0;title\x07\x1b[2J\n\u202e"
    rig.do({"type": "delete", "id": hostile})
    (ident,) = rig.send({"type": "delete", "id": hostile})
    rig.inbox.read("w1", 1)
    rig.inbox.dead_letter(ident, f"KeyError: {hostile}", 5)
    (dead,) = answer(home, "dead", "list", "--error", f"KeyError: {hostile}")
    commands = (
        ("event", "list"), ("event", "show", ident), ("dead", "list"), ("dead", "show", dead["id"]),
        ("dead", "list", "--error", f"KeyError: {hostile}"), ("dead", "discard", "--all", "--yes"),
        ("dead", "retry", "--error", f"KeyError: {hostile}"),
    )  # fmt: skip
    for command in commands:
        result = run(home, *command)
        assert result.exit_code == 0
        assert not {"\x1b", "\x07", "\u202e"} & set(result.output), command
    assert "\\u202e" in run(home, "event", "list").stdout


def test_an_event_is_listed_shown_and_replayed(home: Path, rig: Rig, store: redis.Redis) -> None:
    (ident,) = rig.send({"type": "upsert", "loc": "p/0", "id": 0, "lastmod": "2026-01-01"})
    rig.settle()
    shown = run(home, "event", "show", f"{BASE}p/0").stdout
    found = answer(home, "event", "show", ident)

    assert "published" in shown
    assert f"- <url><loc>{BASE}p/0</loc></url>" in shown
    assert f"+ <url><loc>{BASE}p/0</loc><lastmod>2026-01-01</lastmod></url>" in shown
    assert "$SITEMAPD_TOKEN" in shown
    assert (found["id"], found["state"]) == (ident, "published")
    assert found["lines"][0]["after"].endswith("<lastmod>2026-01-01</lastmod></url>")
    (latest,) = answer(home, "event", "list", "--reason", "changed", "--limit", "5")
    assert (latest["event"], latest["kind"]) == (ident, "decided")
    assert len(answer(home, "event", "list", "--url", f"{BASE}p/*", "--since", "1h")) == 4
    assert len(answer(home, "event", "list", "--url", f"{BASE.upper()}p/0")) == 2
    assert "there are: decided" in str(fails(home, "event", "list", "--kind", "x"))
    assert "or an age: 30m, 2h, 1d" in str(fails(home, "event", "list", "--since", "x"))

    rig.do({"type": "delete", "id": "0"})
    replay = ("event", "replay", "--matching", "--url", f"{BASE}p/0", "--reason", "changed")
    refused = run(home, *replay, given="n\n")
    assert "Accept 1 event of demo again?" in refused.output
    assert answer(home, *replay, "--yes")["number"] == 1
    rig.settle()

    assert rig.listed()[f"{BASE}p/0"] == "2026-01-01"
    (entry,) = audited(store)
    assert entry.subject == f"--matching --url={BASE}p/0 --reason=changed"
    assert "give ids, or --matching, or --file FILE" in str(fails(home, "event", "replay"))


def test_a_file_is_listed_compared_and_rolled_back(
    home: Path, rig: Rig, store: redis.Redis
) -> None:
    before = rig.shard_files()
    rig.do({"type": "delete", "id": "0"}, {"type": "upsert", "loc": "p/1", "lastmod": "2026-01-01"})
    (row,) = answer(home, "files", "list")
    assert (row["file"], row["urls"], row["most_urls"]) == ("pages-1.xml", 2, 10_000)
    assert (row["state"], row["form"], row["shard"]) == ("current", "xml", "pages/1")
    assert "2 of 10,000" in run(home, "files", "list").stdout
    newest, oldest = answer(home, "files", "history", "pages-1.xml")
    assert (newest["changed"], oldest["changed"]) == (2, 3)
    text = run(home, "files", "diff", "pages-1.xml").stdout
    assert f"- <url><loc>{BASE}p/0</loc></url>" in text
    assert f"+ <url><loc>{BASE}p/1</loc><lastmod>2026-01-01</lastmod></url>" in text
    said = answer(home, "files", "diff", "pages/1", "--at", oldest["revision"])
    assert [line["before"] for line in said["lines"]] == [None] * 3

    roll = ("files", "rollback", "pages-1.xml", "--to", newest["revision"])
    refused = run(home, *roll, given="n\n")
    assert "1 page back, 1 changed, 0 gone" in refused.stdout
    assert "Send 2 events for pages-1.xml?" in refused.output
    assert rig.inbox.waiting() == 0
    assert answer(home, *roll, "--yes")["number"] == 2
    rig.settle()

    assert rig.shard_files() == before
    (entry,) = audited(store)
    assert (entry.action, entry.subject) == ("files rollback", "pages-1.xml")
    assert entry.outcome == "1 page back, 1 changed, 0 gone"
    rig.check()


def test_every_action_gives_a_command_that_exists(rig: Rig, store: redis.Redis) -> None:
    """What the console shows beside a button can be pasted: the command line takes its words."""
    queues, dead = QueueActions(store, "demo"), DeadLetterActions(store, "demo")
    events, rolling = EventActions(store, "demo"), Rollback(store, "demo", rig.site)
    outcomes = [queues.pause("events", "me"), queues.resume("events"), queues.purge()]
    outcomes += [queues.drain("me"), queues.resume("intake")]
    for n, choice in enumerate(
        (DeadLetterFilter(error="E: -x"), DeadLetterFilter(everything=True))
    ):
        bury(rig, "E: -x", str(n))
        outcomes.append(dead.retry(choice))
        rig.settle()
        bury(rig, "E: -x", str(n))
        outcomes.append(dead.discard(choice))
    outcomes.append(events.replay([], ["--matching", "--url=x y"], newest=True))
    rig.do({"type": "delete", "id": "0"})
    shard = Shard("pages", 1)
    to = next(rolling._files._revisions.latest(shard)).at
    outcomes.append(rolling.execute(shard, to, rolling.plan(shard, to)))

    assert len({outcome.action for outcome in outcomes}) == 8
    group: Any = typer.main.get_command(app)
    for outcome in outcomes:
        first, *words = shlex.split(outcome.command)
        command, context = group, None
        assert first == "sitemapd"
        while hasattr(command, "resolve_command"):
            context = context or command.make_context("sitemapd", [*words])
            _, command, words = command.resolve_command(context, words)
        assert command.make_context(outcome.action, words).params["site"] == "demo"


def test_publish_and_rebuild_say_so_when_no_file_was_written(home: Path) -> None:
    for words in (("publish",), ("rebuild",)):
        assert run(home, *words).stdout == "no file was written or removed\n"
        assert answer(home, *words) == {"touched": []}


def test_since_is_when_the_page_changed_and_no_event_without_effect_moves_it(
    home: Path, rig: Rig
) -> None:
    loc = f"{BASE}since"
    rig.do({"type": "upsert", "loc": loc, "version": "2026-01-01"})
    before = answer(home, "entry", loc)
    rig.do({"type": "upsert", "loc": loc, "version": "2026-01-02"})
    after = answer(home, "entry", loc)

    assert before["since"] == after["since"]
    assert (before["version"][:10], after["version"][:10]) == ("2026-01-01", "2026-01-02")
    assert [each["decision"] for each in after["lately"]] == ["added", "same content"]


def test_a_lastmod_in_the_future_is_among_the_reasons_of_an_entry(home: Path, rig: Rig) -> None:
    rig.do({"type": "upsert", "loc": f"{BASE}ahead", "lastmod": "2099-01-01"})

    assert "its lastmod lies in the future" in run(home, "entry", f"{BASE}ahead").stdout
