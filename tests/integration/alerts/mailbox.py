"""A real SMTP server on loopback, and what it was given."""

from __future__ import annotations

import asyncio
import ssl
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from email import message_from_bytes, policy
from email.message import EmailMessage
from typing import Any, cast

from aiosmtpd.smtp import SMTP, AuthResult, Envelope

USER, PASSWORD = "alerts", "canary-of-the-password"


class Mailbox:
    """The e-mails that arrived, in order; `answer` is what each DATA gets."""

    def __init__(self) -> None:
        self.letters: list[EmailMessage] = []
        self.recipients: list[list[str]] = []
        self.encrypted: list[bool] = []
        self.users: list[str] = []
        self.answer = "250 taken"
        self.port = 0

    async def handle_DATA(self, server: Any, _session: Any, envelope: Envelope) -> str:  # noqa: N802
        if self.answer.startswith("250"):
            content = cast("bytes", envelope.content)
            letter = message_from_bytes(content, policy=policy.default)
            self.letters.append(cast("EmailMessage", letter))
            self.recipients.append(list(envelope.rcpt_tos))
            self.encrypted.append(server.transport.get_extra_info("sslcontext") is not None)
        return self.answer

    def authenticate(self, _server: Any, _session: Any, _envelope: Any, _how: str, login: Any,
    ) -> AuthResult:  # fmt: skip
        name, password = login.login.decode(), login.password.decode()
        self.users.append(name)
        return AuthResult(success=(name, password) == (USER, PASSWORD), handled=False)


@contextmanager
def mailbox(
    *, tls: ssl.SSLContext | None = None, starttls: bool = False, login: bool = False
) -> Iterator[Mailbox]:
    """A running Mailbox; `tls` from the start, or with `starttls` after that command."""
    box = Mailbox()
    options: dict[str, Any] = {"auth_require_tls": False}
    if login:
        options |= {"authenticator": box.authenticate, "auth_required": True}
    if tls is not None and starttls:
        options |= {"tls_context": tls, "require_starttls": True}
    at_once = tls if tls is not None and not starttls else None
    loop = asyncio.new_event_loop()

    def protocol() -> SMTP:
        with warnings.catch_warnings(action="ignore"):  # it warns of logins without STARTTLS
            return SMTP(box, loop=loop, **options)

    server = loop.run_until_complete(loop.create_server(protocol, "127.0.0.1", 0, ssl=at_once))
    box.port = server.sockets[0].getsockname()[1]
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield box
    finally:
        asyncio.run_coroutine_threadsafe(_ended(server), loop).result(30)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _ended(server: asyncio.Server) -> None:
    """Close the server and what is still spoken with it."""
    server.close()
    mine = asyncio.current_task()
    spoken = [task for task in asyncio.all_tasks() if task is not mine]
    for task in spoken:
        task.cancel()
    await asyncio.gather(*spoken, return_exceptions=True)
