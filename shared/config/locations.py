"""Checks of addresses and paths in the settings: web roots, sources, hosts.

Each check returns its argument, or raises ValueError with the remedy. No message repeats an
address: it may hold a password (RELIABILITY T30).
"""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import urlsplit

FILE = "sitemapd.toml"
"""Name of the configuration in its home."""
DIRECTORY = "sites.d"
"""Name of the directory beside it whose files hold further sites."""

HOST = re.compile(
    r"(?!.*\.\.)[a-z0-9_](?:[a-z0-9_.-]*[a-z0-9_])?|\[?[0-9a-f:]+:[0-9a-f:.]*\]?", re.IGNORECASE
)
LANGUAGE = re.compile(r"[a-z]{2,8}(?:-[a-z0-9]{1,8})*", re.IGNORECASE)

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")


def web_root(text: object) -> object:
    """Check the name of a directory by its text alone."""
    if not isinstance(text, (str, Path)):
        return text
    name = str(text)
    if not name or not name.isprintable():
        raise ValueError("must be a directory, relative to this file or absolute")
    if _SCHEME.match(name):
        raise ValueError("must be a directory of this machine, not a URL")
    if name.startswith("~"):
        raise ValueError("must not begin with ~: write the full path")
    return text


def on_disk(root: Path, *homes: Path) -> str | None:
    """The fault of a `web_root` without links on the disk, None if there is none: `homes` (without
    links, too) hold the settings, which a web server would serve with the secrets in them.
    """
    if any(home.is_relative_to(root) for home in homes):
        return (
            "contains the configuration, whose secrets would be served: choose a directory below it"
        )
    for path in (root, *root.parents):
        try:
            if path.exists():
                return None if path.is_dir() else f"{path} is a file: choose a directory"
        except OSError:  # this process may not look there; the worker may
            return None
    return None


def path_pattern(text: str) -> str:
    """Check a pattern of paths of a site."""
    if not text.startswith("/") or not text.isprintable() or " " in text:
        raise ValueError("must begin with /, e.g. /blog/*")
    return text


def language(text: str) -> str:
    """Check the code of a language (BCP 47)."""
    if not LANGUAGE.fullmatch(text):
        raise ValueError("must be a language code, e.g. en or pt-br")
    return text


def host(text: str) -> str:
    """Check the name or address of a host, without a port."""
    if not HOST.fullmatch(text):
        raise ValueError("must be a host name without scheme, port and path, e.g. www.example.com")
    return text


def http_address(text: str) -> bool:
    """True if `text` is an address of a web server; it may hold a user name."""
    try:
        parts = urlsplit(text)
        meant = parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0
    except ValueError:
        return False
    name = parts.hostname or ""
    return bool(meant) and text.isprintable() and " " not in text and "." not in name[:1]
