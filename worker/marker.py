"""The run marker beside the files: which state wrote them, and how often it had published by then.

An empty or older state must never overwrite what a newer one wrote (RELIABILITY F22).
"""

from __future__ import annotations

import json

from shared.errors import PublishError
from shared.store.work import Run
from worker.files import WebRoot

NAME = ".sitemapd"


def write(root: WebRoot, run: Run) -> None:
    """Say that the files in `root` are those of `run`."""
    root.note(NAME, json.dumps([run.ident, run.publishes]).encode())


def belongs(root: WebRoot, run: Run, site: str) -> bool:
    """Whether the files in `root` are those of `run`, or of an earlier publish of it.

    False if nothing says so: the marker is not there, or was torn by a power cut. PublishError if
    another state wrote them, or a newer copy of this one; `site` is named in the remedy.
    """
    try:
        ident, publishes = json.loads(root.read(NAME) or b"")
        newer = int(publishes) > run.publishes
    except (ValueError, TypeError):
        return False
    if ident != run.ident or newer:
        raise PublishError(
            f"{root.path} was written from another state than this Redis holds, or from a newer "
            f"one: nothing is published. Restore the newer Redis data; or import the pages again, "
            f"then run: sitemapd rebuild --site {site} --adopt"
        )
    return True
