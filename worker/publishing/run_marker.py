"""Run marker beside the files: the state that wrote them, and its number of publishes.

An empty or older state must never overwrite what a newer one wrote (RELIABILITY F22).
"""

from __future__ import annotations

import json

from shared.config.filenames import MARKER as NAME
from shared.errors import ForeignStateError
from shared.store.publishing.publish_batch import PublishRun
from worker.publishing.web_root import WebRoot


def write(root: WebRoot, run: PublishRun, *, durable: bool = False) -> None:
    """Mark the files in `root` as those of `run`; `durable` for the write before the first file.

    Raises PublishError.
    """
    root.note(NAME, json.dumps([run.ident, run.publishes]).encode(), durable=durable)


def belongs(root: WebRoot, run: PublishRun, site: str) -> bool:
    """Return True if the files in `root` are those of `run`, or of an earlier publish of it.

    False without a valid marker: it is missing, or was torn by a power cut. Raises
    ForeignStateError if another state wrote the files, or a newer copy of this one; its remedy
    names `site`. Raises PublishError if the marker cannot be read.
    """
    try:
        ident, publishes = json.loads(root.read(NAME) or b"")
        newer = int(publishes) > run.publishes
    except (ValueError, TypeError):
        return False
    if ident != run.ident or newer:
        raise foreign(
            f"{root.path} was written from another state than this Redis holds, or from a newer "
            "one",
            site,
        )
    return True


def foreign(reason: str, site: str) -> ForeignStateError:
    """Return the error that refuses to overwrite the files of another state, with the remedy."""
    return ForeignStateError(
        reason,
        "restore the newer Redis data; or import the pages again, "
        f"then run: sitemapd rebuild --site {site} --adopt",
    )
