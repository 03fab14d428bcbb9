"""The command `secret`."""

from __future__ import annotations

from deploy.cli.examples import examples
from deploy.cli.output import JsonOption, print_json, raw
from shared.config.standard_secret import new_secret


@examples("sitemapd secret", "sitemapd secret --json")
def secret(as_json: JsonOption = False) -> None:
    """Make a new secret for `secrets = [...]`."""
    made = new_secret()
    if as_json:
        print_json({"secret": made})
    else:
        raw(made)
