"""Static files that make a web root readable: a stylesheet for the XML, and `sitemap.html`.

Both are the same for every site and do not change with its pages: `sitemap.html` reads the
published files in the browser.
"""

from __future__ import annotations

from importlib.resources import files
from typing import NamedTuple

from shared.config.filenames import PAGE, STYLESHEET
from shared.config.sites.site import Site
from shared.errors import PublishError
from shared.telemetry.logs import logger
from worker.publishing.targets.target import Target

NAMES = (STYLESHEET, PAGE)

_log = logger("publisher")


class _Due(NamedTuple):
    """The fault of one file and its expected content, None for no file."""

    fault: str
    content: bytes | None


def content(name: str) -> bytes:
    """Return the shipped bytes of one of `NAMES`."""
    return files(__package__).joinpath(name).read_bytes()


def fault(root: Target, site: Site, name: str) -> str | None:
    """Return `missing`, `differs` or `unwanted` for the file `name`; None if it is right.

    Raises PublishError.
    """
    due = _due(root, site, name)
    return None if due is None else due.fault


def place(root: Target, site: Site) -> None:
    """Write both files where they are missing or differ; remove them where they are unwanted.

    A refusal of the system is only logged: the sitemap itself must not wait for it.
    """
    for name in NAMES:
        try:
            _place(root, site, name)
        except PublishError as error:
            _log.error("file not written", file=name, reason=str(error))


def _place(root: Target, site: Site, name: str) -> None:
    due = _due(root, site, name)
    if due is None:
        if name == PAGE and site.viewer and _theirs(root):
            _log.warning("sitemap.html is not ours: left alone", web_root=root.address)
    elif due.content is None:
        root.remove(name)
    else:
        staged = root.stage(name, [due.content])
        try:
            root.place(staged)
        finally:
            root.discard([staged])


def _due(root: Target, site: Site, name: str) -> _Due | None:
    shipped = content(name)
    if not site.viewer:
        # Of another version, or edited: it may be wanted.
        return _Due("unwanted", None) if root.read_own(name) == shipped else None
    if name == PAGE and _theirs(root):
        return None
    if root.look(name) is None:
        return _Due("missing", shipped)
    return None if root.read_own(name) == shipped else _Due("differs", shipped)


def _theirs(root: Target) -> bool:
    """Return True if the site has a `sitemap.html` of its own, as many do for visitors.

    Ours, of any version, begins with a marker line; a truncated one with a part of it.
    """
    mark = content(PAGE).partition(b"\n")[0]
    try:
        found = root.read(PAGE)
    except PublishError:  # a link, a directory
        return True
    return found is not None and not mark.startswith(found[: len(mark)])
