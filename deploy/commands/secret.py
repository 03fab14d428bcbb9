"""The command `secret`."""

from __future__ import annotations

from deploy.cli.output import raw
from shared.config.standard_secret import new_secret


def secret() -> None:
    """Make a new secret for `secrets = [...]`."""
    raw(new_secret())
