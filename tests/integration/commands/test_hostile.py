"""Texts of users on the command line and in the state are shown whole, as text, by every command
(RELIABILITY T28, T36).
"""

from __future__ import annotations

import io
import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import redis
import structlog
from typer.main import get_command

from deploy.cli import program
from deploy.cli.output import find
from shared.store.keys import Keys
from shared.store.notify.notification_queue import NotificationQueue, RequestRecord
from shared.store.notify.subscriptions import Subscriptions
from shared.store.operations.queues import Queues
from shared.store.operations.worker_registry import HEARTBEAT, WorkerRegistry
from shared.telemetry import logs
from tests.integration.conftest import RedisServer
from tests.integration.rig import BASE, Rig
from tests.integration.worked import beat
from tests.unit.worker.sources.cms import Reply, served

# Between ~7 and z9, so that a text is found again in what is printed: no secret holds a ~.
BRACKETS = "~7[/]y [/red] [bold]b[/bold] [a-z0-9-]{1,3} [notify.search_console] [link]l :smile: z9"
CONTROLS = (
    "~7\x1b[31mred\x1b]0;title\x07 \x9b2J \x85 a\x08b\x0b\x0cc\rd\x7f\ttab "
    "\u202egpj.exe \u2066 \u200b\u2028\ufeff new\nerror all is well z9"
)
SHOWN = CONTROLS.encode("unicode_escape").decode()

CONFIG = """
redis_url = "{url}"
[sites.demo]
base_url = "{base}"
web_root = "public"
tokens = ["canary-token-canary"]
publish_interval = 0
hub = "https://hub.example.com/"
[sites.demo.notify.bing]
key = "canary-key-1234"
[sites.demo.sources.websub]
topics = ["https://other.example.com/feed"]
secret = "0123456789abcdef0123456789abcdef"
"""


class Command(NamedTuple):
    """One command; `texts` are the words before each value that is a text of the user's."""

    words: tuple[str, ...]
    required: tuple[str, ...]
    texts: tuple[tuple[str, ...], ...]
    json: bool


USUAL = {
    "source": "csv:{home}/pages.csv", "url": f"{BASE}p/1", "file": "pages/1", "cms": "ghost",
    "log": "{home}/access.log", "ident": "1-1", "asked": f"{BASE}p/1", "to": "0-0", "name": "w1",
    "home": "{home}",
}  # fmt: skip
"""What each command that must be told something is told."""


def commands(group: Any, words: tuple[str, ...] = ()) -> Iterator[Command]:
    """Every command that there is."""
    below = getattr(group, "commands", {})
    if not below or group.invoke_without_command:
        needed = [each for each in group.params if each.required]
        texts = [each for each in group.params if not getattr(each, "is_flag", False)]
        yield Command(
            words,
            tuple(w for each in needed for w in (*_option(each), USUAL.get(each.name, "x"))),
            tuple((*_others(each, needed), *_option(each)) for each in texts),
            any(each.name == "as_json" for each in group.params),
        )
    for name, command in below.items():
        yield from commands(command, (*words, name))


def _option(parameter: Any) -> tuple[str, ...]:
    return (parameter.opts[0],) if parameter.param_type_name == "option" else ()


def _others(parameter: Any, needed: list[Any]) -> Iterator[str]:
    for each in needed:
        if each is not parameter:
            yield from (*_option(each), USUAL.get(each.name, "x"))


BUILT = get_command(program.app)
"""Built once: that takes longer than most commands."""
COMMANDS = {" ".join(each.words): each for each in commands(BUILT)}
UP_HOME = ("up", ("--home",))
CALLS = pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS.keys())

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """Runs a command in this process as the installed script does; an error that nobody foresaw
    gets out.
    """
    before, hook = structlog.get_config(), sys.excepthook

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(program, "get_command", lambda _: BUILT)
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "argv", ["sitemapd", *arguments])
        monkeypatch.setattr(sys, "stdin", io.StringIO(""))
        monkeypatch.setattr(logs, "_level_of_first", None)
        for stream in ("stdout", "stderr", "__stdout__", "__stderr__"):  # `up` takes others
            monkeypatch.setattr(sys, stream, getattr(sys, stream))
        capfd.readouterr()
        try:
            with pytest.raises(SystemExit) as ended:
                program.main()
        finally:
            logs.drain()
            structlog.configure(**before)
            sys.excepthook = hook
            monkeypatch.undo()
        said = capfd.readouterr()
        code = ended.value.code or 0
        assert isinstance(code, int)
        return code, said.out, said.err

    return run


@pytest.fixture
def rig(store: redis.Redis, tmp_path: Path) -> Rig:
    rig = Rig(store, tmp_path / "public")
    rig.do(*({"type": "upsert", "loc": f"p/{n}", "id": n} for n in range(3)))
    return rig


@pytest.fixture
def home(redis_server: RedisServer, rig: Rig, tmp_path: Path) -> Path:
    text = CONFIG.format(url=redis_server.url, base=rig.site.base_url)
    (tmp_path / "sitemapd.toml").write_text(text)
    (tmp_path / "pages.csv").write_text(f"loc\n{BASE}p/1\n")
    (tmp_path / "access.log").write_text("no log\n")
    (tmp_path / "idle").mkdir()
    (tmp_path / "idle" / "sitemapd.toml").write_text(text.replace(redis_server.url, ""))
    assert find(tmp_path).name == "demo", "a configuration that is refused ends every command"
    return tmp_path


def at(home: Path, command: Command, words: tuple[str, ...]) -> list[str]:
    """The arguments of a command; what would start servers gets a home where it cannot."""
    starts = command.words[0] in {"up", "run"}
    filled = [word.format(home=home) if "{home}" in word else word for word in words]
    if "--home" in filled:
        return [*command.words, *filled]
    return [*command.words, *filled, "--home", str(home / "idle" if starts else home)]


def is_text(said: str) -> None:
    """Every line that was printed is one of ours, and holds nothing that a terminal obeys."""
    assert "Traceback" not in said
    assert not (found := {char for char in said if not char.isprintable()} - {"\n"}), found
    assert not re.search(r"(?m)^error all is well", said)


def is_whole(said: str, *given: str) -> None:
    """Where a text is shown, nothing of it is missing."""
    for found in re.findall(r"~7.*", said):
        plain = found.replace("\\\\", "\\")
        for typers, ours in (("\\x0a", "\\n"), ("\\x0d", "\\r"), ("\\x09", "\\t")):
            plain = plain.replace(typers, ours)
        assert any(plain.startswith(text) for text in given) or _cut(plain, given), found


def _cut(found: str, given: tuple[str, ...]) -> bool:
    """Whether it is one of the texts in another form: a URL, or cut short where it says so."""
    start, _, _ = found.partition("...")
    return "%5B" in found or any(text.startswith(start) for text in given)


@CALLS
def test_t36_every_argument_of_every_command_is_text(
    command: Command, home: Path, run: Run
) -> None:
    given = [(words, text) for words in command.texts for text in (BRACKETS, CONTROLS)]
    calls = [(*words, _harmless(command, words, text, home)) for words, text in given]
    calls += [(*words, "~7 not UTF-8: \udcff") for words in command.texts]
    calls += [(*command.required, "--no-" + CONTROLS), (*command.required, *[CONTROLS] * 3)]
    for words in calls:
        code, out, err = run(*at(home, command, words))

        assert code in {0, 1, 2, 78}, (words, out, err)
        assert code == 0 or err or out, words
        is_text(out + err)
        is_whole(out + err, BRACKETS, SHOWN, "~7 not UTF-8: \\udcff")


def _harmless(command: Command, words: tuple[str, ...], text: str, home: Path) -> str:
    """`text`, or for `up` a home below a file, where it cannot begin."""
    return str(home / "pages.csv" / text) if (command.words[0], words[-1:]) == UP_HOME else text


@pytest.mark.parametrize("name", [name for name, each in COMMANDS.items() if each.json])
def test_t36_what_json_is_asked_for_is_json(name: str, home: Path, run: Run) -> None:
    command = COMMANDS[name]
    for given in (command.required, *((*words, CONTROLS) for words in command.texts[:1])):
        # `up` where it cannot begin; where it can: tests/system/test_first_minute.py
        words = given if name != "up" else ("--home", str(home / "pages.csv" / "x"))
        _, out, err = run(*at(home, command, words), "--json")

        is_text(out + err)
        if out:
            json.loads(out)


@pytest.fixture
def stained(rig: Rig, home: Path) -> Path:
    """A home whose state holds such texts wherever somebody else may write one."""
    client, keys = rig.client, Keys("demo")
    text = BRACKETS + CONTROLS
    rig.do({"type": "upsert", "loc": "video", "videos": [{
        "thumbnail_loc": BASE + "t.jpg", "title": BRACKETS + "\x9b2J \u202e", "description": text,
        "content_loc": BASE + "v.mp4",
    }]})  # fmt: skip
    (ident,) = rig.send({"type": "upsert", "loc": "dead", "id": text})
    rig.inbox.read("w1", 1)
    rig.inbox.dead_letter(ident, text, 5)
    refused = {"reasons": [text], "source": text, "accepted": 0, "request": text}
    client.xadd(keys.recent, {"ignored": json.dumps(refused)})
    Queues(client, "demo").pause("notify", text)
    client.hset(keys.held, "pages/1", "1 1 4")
    NotificationQueue(client, "demo").record(
        RequestRecord(1, "bing", text, 3, (text,), 500, text, 7, text)
    )
    subscriptions = Subscriptions(client, "demo")
    subscriptions.add(["https://other.example.com/feed"], 1)
    subscriptions.change("https://other.example.com/feed", lambda one: one.failed(text, 1))
    WorkerRegistry(client).beat(text, beat(version=text, host=text))
    (home / "public" / f"{BRACKETS.replace('/', '')}-1.xml").write_text("x")
    return home


@CALLS
@pytest.mark.parametrize("as_json", [False, True], ids=["people", "json"])
def test_t28_t36_what_the_state_holds_is_text(
    command: Command, as_json: bool, stained: Path, run: Run
) -> None:
    words = command.required + (("--json",) if as_json and command.json else ())
    if command.words[0] == "up":
        words = ("--home", str(stained / "pages.csv"))
    if command.words[-1] in {"drain", "import", "reconcile"}:  # they wait until nothing waits
        Queues(redis_of(stained), "demo").purge()
        redis_of(stained).hdel(Keys("demo").held, "pages/1")
        redis_of(stained).delete(*redis_of(stained).scan_iter(HEARTBEAT + "*"))
    code, out, err = run(*at(stained, command, words))

    assert code in {0, 1, 2, 78}, (out, err)
    is_text(out + err)
    if as_json and command.json and out:
        json.loads(out)


def redis_of(home: Path) -> redis.Redis:
    return find(home).client()


def test_t36_the_state_is_stained_indeed(stained: Path, run: Run) -> None:
    for words in (
        ("dead", "list"), ("event", "list"), ("queue", "list"), ("notify", "list"),
        ("websub", "list"), ("workers",), ("status", "--watch", "--count", "1"),
        ("entry", f"{BASE}video"),
    ):  # fmt: skip
        _, out, err = run(*words, "--home", str(stained))

        is_text(out + err)
        assert BRACKETS in out, (words, out)
        assert "\\u202e" in out, words


@pytest.mark.parametrize(
    "answered",
    [
        Reply({"title": BRACKETS + CONTROLS, "detail": CONTROLS}, 422),
        Reply({"errors": [{"field": CONTROLS, "detail": BRACKETS, "rule": "x"}]}, 422),
        Reply({"title": "x", "errors": [CONTROLS, {}, None]}, 422),
        Reply({"title": "x", "errors": CONTROLS}, 422),
        Reply([CONTROLS], 500), Reply(CONTROLS), Reply({}), Reply({"accepted": CONTROLS}),
        Reply({"accepted": 1, "ids": CONTROLS, "warnings": [CONTROLS, {}]}),
        Reply(CONTROLS.encode(), 200),
    ],
)  # fmt: skip
def test_t36_what_an_address_answers_is_text(answered: Reply, home: Path, run: Run) -> None:
    with served(lambda _: answered) as address:
        code, out, err = run("event", "send", f"{BASE}p", "--to", address, "--home", str(home))

    assert code in {0, 1}
    is_text(out + err)
    is_whole(out + err, BRACKETS, SHOWN)


@pytest.mark.parametrize("place", ["name", "base_url", "web_root", "form", "unknown", "redis_url"])
def test_t36_what_the_configuration_says_is_text(place: str, home: Path, run: Run) -> None:
    file, quoted = home / "sitemapd.toml", json.dumps(BRACKETS + CONTROLS)
    lines = {
        "name": f'[sites.{quoted}]\nbase_url = {quoted}\nweb_root = "x"',
        "unknown": f"[sites.demo.{quoted}]",
    }.get(place, f"{place} = {quoted}\n[sites.demo]\n{place} = {quoted}")
    file.write_text(lines.replace("\x7f", "\\u007f"))
    code, out, err = run("config", "check", "--home", str(home))

    assert code == 78
    is_text(out + err)
    assert "configuration " in err


def test_t36_on_a_terminal_only_our_own_styles_command_it(home: Path) -> None:
    command = [Path(sys.executable).with_name("sitemapd"), "status", "--home", home, "--site"]
    lead, follow = pty.openpty()
    with subprocess.Popen(
        [*command, CONTROLS], stdin=subprocess.DEVNULL, stdout=follow, stderr=follow,
        env={**os.environ, "TERM": "xterm-256color"},
    ) as process:  # fmt: skip
        os.close(follow)
        said = b""
        with suppress(OSError):  # it says so when the other side has ended
            while more := os.read(lead, 4096):
                said += more
        assert process.wait() == 78
    os.close(lead)
    text = re.sub(r"\x1b\[[0-9;]*m", "", said.decode())

    assert text != said.decode(), "no style at all: no terminal"
    is_text(text.replace("\r\n", "\n"))
    assert SHOWN in text.replace("\r\n", "\n")
