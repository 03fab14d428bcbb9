"""What makes the files of a web root readable: a stylesheet for the XML, and `sitemap.html`.

Both are static, the same for every site, and cost nothing when a page changes: `sitemap.html` reads
the published files in the browser.
"""

from __future__ import annotations

from importlib.resources import files
from typing import NamedTuple

from shared.config.filenames import PAGE, STYLESHEET
from shared.config.site import Site
from shared.errors import PublishError
from shared.logs import logger
from worker.publishing.web_root import WebRoot

NAMES = (STYLESHEET, PAGE)

_log = logger("publisher")


class _Due(NamedTuple):
    """What is not as it should be with one file, and what it is to hold: None for no file."""

    fault: str
    content: bytes | None


def content(name: str) -> bytes:
    """The bytes of one of `NAMES` as they are shipped."""
    return files("worker.publishing").joinpath(name).read_bytes()


def fault(root: WebRoot, site: Site, name: str) -> str | None:
    """Whether the file `name` is `missing`, `differs` or is `unwanted`; None if all is right."""
    due = _due(root, site, name)
    return None if due is None else due.fault


def place(root: WebRoot, site: Site) -> None:
    """Put both files there, where they are not; take them away, where they are not wanted.

    What the system refuses is logged, no more: the sitemap itself must not wait for it.
    """
    for name in NAMES:
        try:
            _place(root, site, name)
        except PublishError as error:
            _log.error("not written", file=name, reason=str(error))


def _place(root: WebRoot, site: Site, name: str) -> None:
    due = _due(root, site, name)
    if due is None:
        if name == PAGE and site.pages and _theirs(root):
            _log.warning("sitemap.html is not ours: left alone", web_root=str(root.path))
    elif due.content is None:
        root.remove(name)
    else:
        staged = root.stage(name, [due.content])
        try:
            root.place(staged)
        finally:
            root.discard([staged])


def _due(root: WebRoot, site: Site, name: str) -> _Due | None:
    shipped = content(name)
    if not site.pages:
        # Of another version, or edited: nobody can tell whether somebody wants it.
        return _Due("unwanted", None) if root.read_own(name) == shipped else None
    if name == PAGE and _theirs(root):
        return None
    if root.look(name) is None:
        return _Due("missing", shipped)
    return None if root.read_own(name) == shipped else _Due("differs", shipped)


def _theirs(root: WebRoot) -> bool:
    """Whether the site has a `sitemap.html` of its own: many do, for their visitors.

    Ours, of any version, begins with a line that says so; one cut short begins with a part of it.
    """
    mark = content(PAGE).partition(b"\n")[0]
    try:
        found = root.read(PAGE)
    except PublishError:  # a link, a directory
        return True
    return found is not None and not mark.startswith(found[: len(mark)])
