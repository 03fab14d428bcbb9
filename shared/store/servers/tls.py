"""Connections over TLS whose errors name the option of the address that is at fault."""

from __future__ import annotations

from typing import Any

from redis import SSLConnection
from redis.exceptions import ConnectionError as DownError
from redis.exceptions import TimeoutError as LateError

_CAUSES = (
    ("mismatch, certificate is not valid",
     "name the server in the address as its certificate does"),
    ("CERTIFICATE_VERIFY_FAILED",
     "ssl_ca_certs in the address must name the authority that certified this server"),
    ("No such file", "a file that ssl_ca_certs, ssl_certfile or ssl_keyfile names is not there"),
    ("KEY_VALUES_MISMATCH", "ssl_keyfile is not the key of the certificate in ssl_certfile"),
    ("WRONG_VERSION_NUMBER", "this port speaks no TLS: name the tls-port, or write redis://"),
    ("RECORD_LAYER_FAILURE", "this port speaks no TLS: name the tls-port, or write redis://"),
)  # fmt: skip
"""Parts of OpenSSL's errors, with the remedy."""
_NOT_REACHED = ("refused", "unreachable", "No route", "not known", "resolution", "timed out")


class TlsConnection(SSLConnection):
    """As redis.SSLConnection. A server refuses a client's certificate only after the handshake
    (RFC 8446 4.4.2.4): what is seen is an end of the connection, at the first command.
    """

    certfile: str | None

    def connect_check_health(self, *args: Any, **options: Any) -> None:
        """Connect. Raises ConnectionError or TimeoutError with the remedy."""
        try:
            super().connect_check_health(*args, **options)
        except LateError as error:  # Redis waits for the rest of what it takes for a command
            raise LateError(f"{error}: not reached, or this port speaks no TLS") from error
        except DownError as error:
            todo = remedy(str(error), with_certificate=bool(self.certfile))
            if type(error) is not DownError or not todo:  # the server answered, or is not reached
                raise
            raise DownError(f"{error} {todo}") from error


def remedy(said: str, *, with_certificate: bool) -> str:
    """Return what to do about an error of a connection; empty if TLS is not what failed."""
    for part, todo in _CAUSES:
        if part in said:
            return todo
    if any(part in said for part in _NOT_REACHED):
        return ""
    if with_certificate:
        return "the server may not take the certificate in ssl_certfile: see its log"
    return "the server may ask for a certificate: ssl_certfile and ssl_keyfile in the address"
