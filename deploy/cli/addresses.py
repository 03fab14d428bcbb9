"""Addresses of web servers as options of a command."""

from __future__ import annotations

import re
from typing import Annotated
from urllib.parse import urlsplit

import typer


def web_address(text: str) -> str:
    """Parse the value of `--to`. Raises typer.BadParameter if it is no address of a web server."""
    if not text:
        return text
    try:
        parts = urlsplit(text)
        meant = parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0
    except ValueError:  # the port, or a host in brackets
        meant = False
    # urlsplit strips controls; quotes, spaces, ? and # would end a word of a shell or the path.
    if not meant or not _WEB_ADDRESS.fullmatch(text):
        raise typer.BadParameter(f"{text} is no address as https://www.example.com:8443")
    return text


_WEB_ADDRESS = re.compile(r"[!$%&()*+,\-./0-9:;=A-Z\[\]_a-z~]+")

ToOption = Annotated[
    str | None,
    typer.Option("--to", parser=web_address, metavar="URL", help="address of the webhook"),
]
