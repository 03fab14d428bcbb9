"""`sitemapd up` sends one e-mail when events fail and one when they are published after all."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from tests.integration.alerts.mailbox import PASSWORD, USER, Mailbox, mailbox
from tests.integration.engines import Engine, engine, reply
from tests.system.driver import System, wait_until

CANARY = "canary-of-the-slack-address"
CONFIG = """
[alerts]
name = "host-7"
group_seconds = 0
end_minutes = 0
[alerts.failed]
after_minutes = 0
[alerts.email]
host = "127.0.0.1"
port = {port}
security = "plain"
user = "{user}"
password = "env:ALERT_PASSWORD"
sender = "sitemapd@example.com"
to = ["ops@example.com"]
[alerts.slack]
url = "{slack}/services/{canary}"
allow_private = true
[sites.demo]
base_url = "https://www.example.com"
web_root = "public"
secrets = ["whsec_{secret}"]
"""


@pytest.fixture
def box() -> Iterator[Mailbox]:
    with mailbox(login=True) as box:
        yield box


@pytest.fixture
def slack() -> Iterator[Engine]:
    with engine(reply(200, b"ok")) as server:
        yield server


@pytest.fixture
def system(tmp_path: Path, box: Mailbox, slack: Engine) -> Iterator[System]:
    system = System(tmp_path / "home", {"ALERT_PASSWORD": PASSWORD})
    secret = base64.b64encode(bytes(32)).decode()
    system.configure(
        CONFIG.format(port=box.port, user=USER, secret=secret, slack=slack.url, canary=CANARY)
    )
    system.start()
    yield system
    system.end()


def event(path: str) -> dict[str, object]:
    loc = f"https://www.example.com/{path}"
    return {"type": "upsert", "loc": loc, "group": "g", "lang": path}


def test_a_failed_event_is_one_email_and_its_revival_another(
    system: System, box: Mailbox, slack: Engine
) -> None:
    with redis.Redis(unix_socket_path=str(system.home / "redis" / "redis.sock")) as client:
        system.send(event("en"))
        system.quiet()
        (group,) = client.keys("{demo}:cluster:*")
        kept = client.dump(group)
        client.delete(group)
        client.set(group, "damaged")
        system.send(event("de"))
        wait_until(lambda: box.letters, "an e-mail says that it failed")
        # A worker that is killed before that repeats the message, under the same id.
        waiting = "{_sitemapd}:alerts:messages"
        wait_until(lambda: not client.exists(waiting), "the delivery is recorded")
        system.kill("worker")

        (letter,) = box.letters
        assert letter["Subject"] == "[host-7] failed events at demo"
        assert "1 event failed five times" in letter.get_content()
        assert "sitemapd dead list --site demo" in letter.get_content()
        (active,) = json.loads(system.run("alerts", "--json").stdout)["alerts"]
        assert (active["condition"], active["site"], active["told"]) == ("failed", "demo", True)
        assert "failed events" in system.run("alerts", "list").stdout

        client.delete(group)
        client.restore(group, 0, kept)
    assert system.run("dead", "retry", "--all").returncode == 0
    wait_until(lambda: len(box.letters) > 1, "an e-mail says that it is over")
    system.quiet()

    assert [letter["Subject"] for letter in box.letters] == [
        "[host-7] failed events at demo", "[host-7] over: failed events at demo",
    ]  # fmt: skip
    assert set(system.published()) == {f"https://www.example.com/{path}" for path in ("de", "en")}
    assert len(slack.asked) == 2
    assert "no alert is active" in system.run("alerts").stdout

    tested = system.run("alerts", "test")
    assert tested.returncode == 0, tested.stdout + tested.stderr
    assert tested.stdout.splitlines() == [
        "email: 127.0.0.1 took it for ops@example.com", "slack: 127.0.0.1 answered 200",
    ]  # fmt: skip
    assert len(box.letters) == len(slack.asked) == 3
    box.answer = "451 greylisted"
    tested = system.run("alerts", "test", "--channel", "email", "--json")
    assert tested.returncode == 1
    (said,) = json.loads(tested.stdout)
    assert (said["channel"], said["arrived"]) == ("email", False)
    assert "451 greylisted" in said["said"]

    assert system.stop() == 0
    logs = [system.home.parent / "home.log", *system.home.glob("logs/*")]
    log = "".join(path.read_text(errors="replace") for path in logs)
    assert "alert began" in log
    assert CANARY not in log
    assert PASSWORD not in log


def test_an_alert_that_cannot_be_delivered_is_red_where_people_look(
    system: System, box: Mailbox
) -> None:
    box.answer = "451 greylisted"
    with redis.Redis(unix_socket_path=str(system.home / "redis" / "redis.sock")) as client:
        client.xadd("{demo}:inbox", {"e": b"not an event"})

        def red() -> bool:
            (status,) = json.loads(system.run("status", "--json").stdout)
            return any(each["part"] == "email" for each in status["failing"])

        wait_until(red, "status shows the channel that fails")
    shown = system.run("status").stdout
    assert "alerts (email) of" in shown
    assert "451 greylisted" in shown
    assert "attempts failed" in system.run("alerts").stdout
