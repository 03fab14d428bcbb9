"""Messages arrive as e-mail, as a signed webhook and in Slack's form, or it is said why not."""

from __future__ import annotations

import json
import re
import socket
import ssl
import threading
from pathlib import Path
from typing import Any

import pytest
import standardwebhooks

from shared.alerts.lifecycle import Alert, AlertKey, Announcement
from shared.alerts.messages import SHOWN, AlertMessage, message_of
from shared.config.alerts import Alerts, EmailChannel
from shared.errors import CredentialError, OutboundError
from tests.integration.alerts.mailbox import PASSWORD, USER, mailbox
from tests.integration.engines import engine, hang, reply
from tests.integration.http.test_client import certificate
from worker.alerts.channels import SLACK_LONGEST, senders
from worker.alerts.email_channel import EmailSender

SECRET = standardwebhooks.Webhook("whsec_" + "QUJD" * 11)
WHSEC = "whsec_" + "QUJD" * 11
NOW = 1_700_000_000_000
SAID, TODO = "3 events <b>failed</b> & \u202ewere set aside.", "sitemapd dead list --site site-000"
BEGAN = Alert(SAID, TODO, NOW - 180_000, began_ms=NOW)
ENDED = BEGAN._replace(ended_ms=NOW, told=True)


def message(began: int = 1, ended: int = 0) -> AlertMessage:
    announced = Announcement(
        {AlertKey("failed", f"site-{n:03}"): BEGAN for n in range(began)},
        {AlertKey("disk", f"site-{n:03}"): ENDED for n in range(ended)},
    )
    return message_of(announced, "alert_0123", "host-7", NOW, began + 2)


def email(port: int, **given: Any) -> EmailChannel:
    plain = {"host": "127.0.0.1", "security": "plain", "sender": "sitemapd@example.com"}
    return EmailChannel(
        **{**plain, "port": port, "to": ["ops@example.com", "b@example.com"], **given}
    )


def http(name: str, url: str, **given: Any) -> Any:
    return senders(Alerts.model_validate({name: {"url": url, "allow_private": True, **given}}))[
        name
    ]


def test_an_email_arrives_for_everybody_and_says_what_to_do() -> None:
    with mailbox() as box:
        assert "took it for ops@example.com" in EmailSender(email(box.port)).send(message())

    (letter,) = box.letters
    assert box.recipients == [["ops@example.com", "b@example.com"]]
    assert letter["Subject"] == "[host-7] failed events at site-000"
    assert letter["Message-ID"] == "<alert_0123@example.com>"
    assert letter["Auto-Submitted"] == "auto-generated"
    text = letter.get_content()
    assert "sitemapd dead list --site site-000" in text
    assert "2 more are active" in text
    assert "\u202e" not in text


@pytest.mark.parametrize("security", ["tls", "starttls"])
def test_an_email_is_given_over_tls_with_a_login(tmp_path: Path, security: str) -> None:
    (tmp_path / "password").write_text(PASSWORD)
    server, client = certificate(tmp_path, "localhost")
    given = {"host": "localhost", "security": security, "user": USER,
        "password": f"file:{tmp_path / 'password'}"}  # fmt: skip
    with mailbox(tls=server, starttls=security == "starttls", login=True) as box:
        EmailSender(email(box.port, **given), tls=lambda: client).send(message())

    assert (box.encrypted, box.users) == ([True], [USER])


@pytest.mark.parametrize("security", ["tls", "starttls"])
def test_a_server_that_is_another_gets_neither_password_nor_message(
    tmp_path: Path, security: str
) -> None:
    server, _ = certificate(tmp_path, "localhost")
    trusting_nobody = ssl.create_default_context()
    with mailbox(tls=server, starttls=security == "starttls", login=True) as box:
        given = {"host": "localhost", "security": security, "user": USER, "password": PASSWORD}
        sender = EmailSender(email(box.port, **given), tls=lambda: trusting_nobody)
        with pytest.raises(OutboundError, match="certificate"):
            sender.send(message())

    assert (box.users, box.letters) == ([], [])


def test_a_server_without_starttls_gets_nothing(tmp_path: Path) -> None:
    _, client = certificate(tmp_path, "localhost")
    with mailbox() as box:
        sender = EmailSender(
            email(box.port, host="localhost", security="starttls"), tls=lambda: client
        )
        with pytest.raises(OutboundError, match="STARTTLS"):
            sender.send(message())
        assert not box.letters


def test_a_refused_login_does_not_repeat_the_password() -> None:
    with mailbox(login=True) as box:
        sender = EmailSender(email(box.port, user=USER, password=PASSWORD[:-1]))
        with pytest.raises(OutboundError, match="535") as raised:
            sender.send(message())
    assert PASSWORD[:-1] not in str(raised.value)


def test_a_server_that_refuses_the_message_is_quoted() -> None:
    with mailbox() as box:
        box.answer = "452 no space \x1b[31m"
        with pytest.raises(OutboundError, match=r"452 no space \[31m"):
            EmailSender(email(box.port)).send(message())


def test_a_server_that_drips_is_left_in_time() -> None:
    over = threading.Event()

    def drip(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection:
            while not over.wait(0.02):
                try:
                    connection.sendall(b"2")
                except OSError:
                    return

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=drip, args=(listener,))
        thread.start()
        sender = EmailSender(email(listener.getsockname()[1]), all_s=0.3)
        try:
            with pytest.raises(OutboundError, match=r"not done within 0\.3 s"):
                sender.send(message())
        finally:
            over.set()
            thread.join()


def test_a_server_that_is_not_there_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(OutboundError, match=r"127\.0\.0\.1 did not take the e-mail"):
        EmailSender(email(port)).send(message())


def test_a_webhook_is_signed_so_that_the_standard_library_verifies_it(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text(WHSEC)
    with engine(reply(204)) as server:
        sender = http("webhook", f"{server.url}/in", secret=f"file:{tmp_path / 'secret'}")
        sender.send(message(2, 1))
    (asked,) = server.asked

    verified = SECRET.verify(asked.body, asked.headers)
    assert asked.headers["content-type"] == "application/json"
    assert asked.headers["webhook-id"] == "alert_0123"
    assert verified == json.loads(asked.body)
    assert verified["type"] == "alerts.began"
    assert verified["timestamp"] == "2023-11-14T22:13:20Z"
    data = verified["data"]
    assert [each["site"] for each in data["began"]] == ["site-000", "site-001"]
    assert data["began"][0]["todo"] == "sitemapd dead list --site site-000"
    assert (data["ended"][0]["condition"], data["ended"][0]["for_s"]) == ("disk", 180)
    assert data["active"] == 4


def test_another_secret_does_not_verify() -> None:
    with engine(reply(200)) as server:
        http("webhook", server.url, secret="whsec_" + "REVG" * 11).send(message())

    with pytest.raises(standardwebhooks.WebhookVerificationError):
        SECRET.verify(server.asked[0].body, server.asked[0].headers)


def test_slack_gets_one_text_with_its_three_characters_escaped() -> None:
    """docs.slack.dev, incoming webhooks and formatting: `text` is required, & < > are escaped."""
    with engine(reply(200, b"ok")) as server:
        assert http("slack", f"{server.url}/services/T0/B0/x").send(message()).endswith("200")

    (asked,) = server.asked
    assert asked.headers["content-type"] == "application/json"
    body = asked.json()
    assert set(body) == {"text"}
    assert body["text"].startswith("*[host-7] failed events at site-000*\n")
    assert "3 events &lt;b&gt;failed&lt;/b&gt; &amp; " in body["text"]
    assert not re.search(r"[<>]|&(?!amp;|lt;|gt;)", body["text"])


def test_a_message_about_hundreds_of_sites_is_short_in_every_channel() -> None:
    many = message(500, 500)
    with engine(reply(200)) as server:
        http("slack", server.url).send(many)

    assert many.subject == "[host-7] failed events at 500 sites; over: a full disk at 500 sites"
    assert f"failed events: {500 - SHOWN} more sites" in many.text
    assert len(many.text.splitlines()) < 4 * SHOWN
    assert len(server.asked[0].json()["text"]) <= SLACK_LONGEST + 4
    assert len(many.plain()["data"]["began"]) == 500


@pytest.mark.parametrize(
    ("answer", "said"),
    [(reply(404, b"no_service"), "404: no_service"), (reply(302, location="/x"), "302")],
)
def test_an_answer_that_is_no_success_is_a_failure(answer: Any, said: str) -> None:
    with engine(answer) as server, pytest.raises(OutboundError, match=said):
        http("slack", server.url).send(message())


def test_the_address_of_slack_is_not_repeated() -> None:
    with engine(hang) as server:
        port = server.port
    with pytest.raises(OutboundError) as raised:
        http("slack", f"http://127.0.0.1:{port}/services/canary").send(message())

    assert "canary" not in str(raised.value)


def test_a_private_address_is_asked_only_if_that_is_allowed() -> None:
    with engine(reply(200)) as server:
        for url in (server.url, f"https://127.0.0.1:{server.port}"):
            sender = senders(Alerts.model_validate({"slack": {"url": url}}))["slack"]
            with pytest.raises(OutboundError):
                sender.send(message())
        assert not server.asked


def test_a_secret_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALERT_URL", "not an address")
    with pytest.raises(CredentialError, match="NO_SUCH"):
        http("slack", "env:NO_SUCH").send(message())
    with pytest.raises(CredentialError, match="none as https://"):
        http("slack", "env:ALERT_URL").send(message())
