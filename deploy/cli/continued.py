"""Ctrl-C in a command that can be continued: what was done, and the command that goes on."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import typer

from deploy.cli.interrupts import INTERRUPTED
from deploy.cli.output import note

_KEY_OPTION = "--key"


@contextmanager
def continued(source: str, shown: str, done: Callable[[], str]) -> Iterator[None]:
    """On Ctrl-C in the block, end the command with what was `done` and the line to go on with.

    `shown` is the address of the `source` without the secrets in it.
    """
    try:
        yield
    except KeyboardInterrupt:
        note(f"interrupted; {done()}")
        note(f"go on with: {same_command(sys.argv[1:], source, shown)}")
        if source not in {"", shown}:
            note("and with the credentials of the source, which are left out here")
        raise typer.Exit(INTERRUPTED) from None


def same_command(arguments: list[str], source: str, shown: str) -> str:
    """Return the command line of `arguments` for a shell, without the secrets in it (RELIABILITY
    T30): that of the `source` is `shown` without, a key is left to its variable.
    """
    words, secret = list[str](), False
    for each in arguments:
        if secret or each.split("=")[0] == _KEY_OPTION:
            secret = each == _KEY_OPTION
            continue
        words.append(each.replace(source, shown) if source else each)
    return shlex.join(("sitemapd", *words))
