"""Channels of alerts: an SMTP server, a signed webhook, and what takes Slack's JSON.

Each sends one message, and raises OutboundError or CredentialError if it did not arrive.
"""

from __future__ import annotations

import base64
import hmac
import json
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar
from urllib.parse import urlsplit

from pydantic import SecretStr

from shared.alerts.messages import AlertMessage
from shared.config import locations
from shared.config.alerts import Alerts, SlackChannel, WebhookChannel
from shared.config.notify.engines import secret_of
from shared.config.standard_secret import standard_key
from shared.errors import CredentialError, OutboundError
from worker.alerts.email_channel import EmailSender
from worker.http.client import ask
from worker.http.exchange import AllowedHosts, Outbound, OutboundRequest, excerpt

SLACK_LONGEST = 3_500
"""Characters of a Slack message: longer ones than 4,000 are split, in the middle of an escape."""


class HttpSender(ABC):
    """A channel that takes JSON by POST."""

    name: ClassVar[str]

    def __init__(self, url: SecretStr, *, private: bool, outbound: Outbound) -> None:
        self._url, self._private, self._outbound = url, private, outbound

    @abstractmethod
    def content(self, message: AlertMessage) -> Mapping[str, Any]:
        """Return the JSON object to be sent."""

    def signed(self, message: AlertMessage, body: bytes) -> Mapping[str, str]:  # noqa: ARG002
        """Return further headers for `body`. Raises CredentialError."""
        return {}

    def send(self, message: AlertMessage) -> str:
        """Send `message`; return the answer in a few words. Raises OutboundError,
        CredentialError.
        """
        url = secret_of(self._url)
        if not locations.http_address(url):
            raise CredentialError(f"the address of {self.name} is none as https://host/path")
        host = urlsplit(url).hostname or ""
        body = json.dumps(self.content(message), ensure_ascii=False).encode()
        headers = {"Content-Type": "application/json", **self.signed(message, body)}
        request = OutboundRequest("POST", url, host, headers, body, partly=True)
        answer = self._outbound(request, AllowedHosts(frozenset({host}), private=self._private))
        if not 200 <= answer.status < 300:
            text = excerpt(answer.body)
            said = f"{host} answered {answer.status}" + (f": {text}" if text else "")
            raise OutboundError(said.replace(url, "***"))
        return f"{host} answered {answer.status}"


class WebhookSender(HttpSender):
    """The message as JSON, signed by Standard Webhooks."""

    name = "webhook"

    def __init__(self, config: WebhookChannel, outbound: Outbound) -> None:
        super().__init__(config.url, private=config.allow_private, outbound=outbound)
        self._secret = config.secret

    def content(self, message: AlertMessage) -> Mapping[str, Any]:
        """Return type, timestamp and data."""
        return message.plain()

    def signed(self, message: AlertMessage, body: bytes) -> Mapping[str, str]:
        """Return id, time and signature. Raises CredentialError if the secret is none."""
        key = standard_key(secret_of(self._secret).encode())
        if key is None:
            raise CredentialError("the secret of the webhook is not whsec_ and base64")
        now = str(int(time.time()))  # receivers refuse an old one, and a retry is signed anew
        content = f"{message.ident}.{now}.".encode() + body
        signature = base64.b64encode(hmac.digest(key, content, "sha256")).decode()
        return {
            "webhook-id": message.ident, "webhook-timestamp": now,
            "webhook-signature": f"v1,{signature}",
        }  # fmt: skip


class SlackSender(HttpSender):
    """The text of the message, for incoming webhooks of Slack, Mattermost and the like."""

    name = "slack"

    def __init__(self, config: SlackChannel, outbound: Outbound) -> None:
        super().__init__(config.url, private=config.allow_private, outbound=outbound)

    def content(self, message: AlertMessage) -> Mapping[str, Any]:
        """Return the one member that all of them know, with Slack's three characters escaped."""
        lines, size = [f"*{_escaped(message.subject)}*"], 0
        for line in message.lines():
            escaped = _escaped(line)
            size += len(escaped) + 1
            if size > SLACK_LONGEST - len(lines[0]):
                lines.append("...")
                break
            lines.append(escaped)
        return {"text": "\n".join(lines).strip()}


Sender = EmailSender | HttpSender


def senders(settings: Alerts, outbound: Outbound = ask) -> dict[str, Sender]:
    """Return the configured channels by name."""
    found: dict[str, Sender] = {}
    if settings.email is not None:
        found["email"] = EmailSender(settings.email)
    if settings.webhook is not None:
        found["webhook"] = WebhookSender(settings.webhook, outbound)
    if settings.slack is not None:
        found["slack"] = SlackSender(settings.slack, outbound)
    return found


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
