"""One-time links into the console, for who is on the machine and may read its configuration."""

from __future__ import annotations

import redis

from shared.console import Console
from shared.errors import ConfigError, Fault
from shared.store.logins import Logins


def user_of(console: Console, user: str | None = None) -> str:
    """`user`, by default the first who may act; ConfigError if there is no such user."""
    if not console.users:
        detail = "without users there is no console: add [console.users.NAME] with a token"
        raise ConfigError(Fault("console.users", "config", detail))
    operators = (name for name, each in console.users.items() if each.role == "operator")
    name = user or next(operators, next(iter(console.users)))
    if name not in console.users:
        detail = f"{name} is not configured; there are: {', '.join(console.users)}"
        raise ConfigError(Fault("--user", "config", detail))
    return name


def make(console: Console, client: redis.Redis, address: str, user: str | None = None) -> str:
    """A link that logs `user` in (see `user_of`), once, within ten minutes.

    `address` is where the console is: scheme, host, port.
    """
    name = user_of(console, user)
    return f"{address.rstrip('/')}/admin/login?once={Logins(client).link(name)}"
