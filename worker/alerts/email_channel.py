"""Alerts by e-mail: one message to an SMTP server, within a deadline for all of it.

The server is named by the administrator, so it may be anywhere; certificates are checked.
"""

from __future__ import annotations

import smtplib
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import formatdate
from typing import Any

from shared.alerts.messages import AlertMessage
from shared.config.alerts import EmailChannel
from shared.config.notify.engines import secret_of
from shared.errors import OutboundError
from worker.http.client import trusted
from worker.http.exchange import excerpt

ALL_S = 30.0
"""Seconds that one message may take in all."""

STEP_S = 10.0
"""Seconds that the server may be silent."""


class EmailSender:
    """Sender of e-mails by one SMTP server."""

    name = "email"

    def __init__(
        self, config: EmailChannel, *, tls: Callable[[], ssl.SSLContext] = trusted,
        all_s: float = ALL_S,
    ) -> None:  # fmt: skip
        """`tls` returns the trusted authorities, `all_s` bounds one message (s)."""
        self._config, self._tls, self._all_s = config, tls, all_s

    def send(self, message: AlertMessage) -> str:
        """Send `message`; return the answer in a few words. Raises OutboundError,
        CredentialError.
        """
        config = self._config
        password = secret_of(config.password) if config.user else ""
        letter = composed(message, config)
        with self._session() as server:
            if config.user:
                server.login(config.user, password)
            refused = server.send_message(letter, config.sender, config.to)
        if refused:
            names = ", ".join(f"{to}: {excerpt(said)}" for to, (_, said) in refused.items())
            return f"{config.host} took it, but not for {names}"
        return f"{config.host} took it for {', '.join(config.to)}"

    @contextmanager
    def _session(self) -> Iterator[smtplib.SMTP]:
        """Yield a session, encrypted as configured. Raises OutboundError for any fault in it."""
        config, spoken, late = self._config, _Spoken(), threading.Event()

        def hang_up() -> None:
            late.set()
            spoken.hang_up()

        timer = threading.Timer(self._all_s, hang_up)
        timer.daemon = True
        timer.start()
        try:
            server = self._connected(spoken)
            try:
                if config.security == "starttls":
                    server.starttls(context=self._tls())
                yield server
                # Taken is taken, whatever the server says to QUIT.
                with suppress(OSError, smtplib.SMTPException):
                    server.quit()
            finally:
                server.close()
        except (OSError, smtplib.SMTPException, ValueError) as error:
            reason = f"not done within {self._all_s:g} s" if late.is_set() else _reason(error)
            if config.user:
                reason = reason.replace(secret_of(config.password), "***")
            raise OutboundError(f"{config.host} did not take the e-mail: {reason}") from None
        finally:
            timer.cancel()

    def _connected(self, spoken: _Spoken) -> smtplib.SMTP:
        config = self._config
        host, port = config.host, config.used_port
        if config.security == "tls":
            return _EncryptedSession(spoken, host, port, timeout=STEP_S, context=self._tls())
        return _Session(spoken, host, port, timeout=STEP_S)


class _Spoken:
    """The session that is spoken, from its greeting on, to be ended by another thread."""

    session: smtplib.SMTP | None = None

    def hang_up(self) -> None:
        sock = getattr(self.session, "sock", None)
        if sock is not None:
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)


class _Session(smtplib.SMTP):
    """A session that is known to `spoken` before its constructor waits for the greeting."""

    def __init__(self, spoken: _Spoken, *args: Any, **options: Any) -> None:
        self._spoken = spoken
        super().__init__(*args, **options)

    def getreply(self) -> tuple[int, bytes]:
        self._spoken.session = self
        return super().getreply()


class _EncryptedSession(_Session, smtplib.SMTP_SSL):
    """The same over TLS."""


def composed(message: AlertMessage, config: EmailChannel) -> EmailMessage:
    """Return the e-mail; a repeated one has the same Message-ID."""
    letter = EmailMessage(policy=SMTP)
    letter["From"], letter["To"] = config.sender, ", ".join(config.to)
    letter["Subject"] = message.subject
    letter["Date"] = formatdate(message.at_ms / 1000)
    letter["Message-ID"] = f"<{message.ident}@{config.sender.rpartition('@')[2]}>"
    letter["Auto-Submitted"] = "auto-generated"  # RFC 3834: no answer by a machine
    letter.set_content(message.text)
    return letter


def _reason(error: Exception) -> str:
    """Return the reason on one line; the answers of a server are texts of others."""
    if isinstance(error, smtplib.SMTPResponseException):
        return f"{error.smtp_code} {excerpt(error.smtp_error)}"
    if isinstance(error, smtplib.SMTPRecipientsRefused):
        return "; ".join(f"{to}: {excerpt(said)}" for to, (_, said) in error.recipients.items())
    if isinstance(error, TimeoutError):
        return f"silent for {STEP_S:g} s"
    return excerpt(str(error)) or type(error).__name__
