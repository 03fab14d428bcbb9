"""One-time links into the console, for an administrator who may read the configuration."""

from __future__ import annotations

from urllib.parse import urlsplit

import redis

from shared.config.console import Console, is_loopback
from shared.errors import ConfigError, Fault
from shared.store.operations.sessions import Sessions


def user_of(console: Console, user: str | None = None) -> str:
    """Return `user`, by default the first operator. Raises ConfigError if there is no such user."""
    if not console.users:
        detail = "the console has no users: add [console.users.NAME] with a token"
        raise ConfigError(Fault("console.users", "config", detail))
    operators = (name for name, each in console.users.items() if each.role == "operator")
    name = user or next(operators, next(iter(console.users)))
    if name not in console.users:
        detail = f"{name} is not configured; there are: {', '.join(console.users)}"
        raise ConfigError(Fault("--user", "config", detail))
    return name


def where(console: Console, running: str, to: str | None = None) -> str:
    """Return the console's address: `to`, else its `origin`, else `running`, where it is served
    now.

    Raises ConfigError if there is none, or if the console does not answer there: the link holds a
    secret, and the host may belong to a third party.
    """
    address = to or next(iter(console.origin), running)
    if not address:
        detail = (
            "nothing runs here that would answer: start `sitemapd up`, name the address of the "
            "console with --to, or as `origin` in [console]"
        )
        raise ConfigError(Fault("--to", "config", detail))
    host = urlsplit(address).hostname or ""
    known = {urlsplit(origin).hostname for origin in console.origin}
    if host not in known if known else not is_loopback(host):
        detail = f"the console does not answer at {address}: name it as `origin` in [console]"
        raise ConfigError(Fault("--to", "config", detail))
    return address


def make(console: Console, client: redis.Redis, address: str, user: str | None = None) -> str:
    """Return a link that logs `user` in (see `user_of`), once, within ten minutes.

    `address` is the scheme, host and port of the console. Raises ConfigError for an unknown user.
    """
    name = user_of(console, user)
    return f"{address.rstrip('/')}/admin/login?once={Sessions(client).link(name)}"
