"""Files of the further outputs of a site: written after its sitemap, compared, and removed when
they are switched off.

A site without any loads none of their modules.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import redis

from shared.config.sites.site import Site
from shared.errors import PublishError
from shared.store.publishing.publish_work import PublishedShard
from shared.telemetry.logs import logger
from worker.publishing.targets.target import Target

if TYPE_CHECKING:
    from worker.publishing.outputs.output import Output
    from worker.publishing.shard_file import MergedShard

_log = logger("publisher")


class OutputFiles:
    """Writer of the further outputs of one site; `on` if there are any."""

    def __init__(self, client: redis.Redis, name: str, site: Site) -> None:
        self._client, self._name, self._site = client, name, site
        self.on = site.outputs.files

    @cached_property
    def _every(self) -> list[tuple[bool, Output]]:
        """Each output, and whether it is on."""
        from worker.publishing.outputs.change_list import ChangeListFiles

        of, outputs = (self._client, self._name, self._site), self._site.outputs
        return [(outputs.change_list, ChangeListFiles(*of))]

    def publish(
        self, root: Target, done: Sequence[PublishedShard], merged: Sequence[MergedShard],
        *, again: bool,
    ) -> list[str]:  # fmt: skip
        """Record what a publish pass changed, by the `merged` shards that are `done`, and write
        what differs; with `again` also remove what is off. Returns the names written.

        Raises StoreError, PublishError.
        """
        placed = {each.taken.shard for each in done if not each.held}
        published = [each for each in merged if each.taken.shard in placed]
        for on, output in self._every:
            if on:
                output.record(published)
        for on, output in self._every if again else ():
            if not on:
                output.forget()
        return self.write(root, tidy=again)

    def write(self, root: Target, *, tidy: bool = False) -> list[str]:
        """Write the files that differ, and with `tidy` remove those of outputs that are off; return
        the names written. What the system refuses to write is logged.

        Raises StoreError, PublishError.
        """
        written = []
        for name, content in self._contents():
            try:
                if root.read(name) != content:
                    self._replace(root, name, content)
                    written.append(name)
            except PublishError as error:
                _log.error("file not replaced", site=self._name, file=name, reason=str(error))
        removed = [name for name in self._unwanted(root) if root.remove(name)] if tidy else []
        if removed:
            root.sync()
            _log.info("files of outputs removed", site=self._name, files=removed)
        return written

    def _contents(self) -> Iterator[tuple[str, bytes]]:
        for on, output in self._every if self.on else ():
            if on:
                yield from output.contents().items()

    def _replace(self, root: Target, name: str, content: bytes) -> None:
        staged = root.stage(name, [content])
        try:
            root.flush(staged)
            root.place(staged)
        finally:
            root.discard([staged])

    def _unwanted(self, root: Target) -> Iterator[str]:
        """Yield the files of outputs that are off; those of others stay."""
        for on, output in self._every:
            for name in () if on else output.found(root):
                if output.is_ours(root.read_own(name) or b""):
                    yield name

    def faults(self, root: Target) -> Iterator[tuple[str, str]]:
        """Yield the name and `missing`, `differs` or `unwanted` of each file that is not right.

        Raises StoreError, PublishError.
        """
        for name, content in self._contents():
            found = root.read(name)
            if found != content:
                yield name, "missing" if found is None else "differs"
        for name in self._unwanted(root):
            yield name, "unwanted"

    def names(self) -> list[str]:
        """Return the names of the files that should be there. Raises StoreError."""
        return [
            name
            for on, output in (self._every if self.on else ())
            if on
            for name in output.expected()
        ]

    def fault(self, root: Target, name: str) -> str | None:
        """Return `missing` or `differs` for the file `name`, one of `names`; None if it is right.

        Raises StoreError, PublishError.
        """
        for on, output in self._every:
            expected = output.content(name) if on else None
            if expected is not None:
                found = root.read(name)
                return "missing" if found is None else "differs" if found != expected else None
        return None

    def remove(self, root: Target) -> list[str]:
        """Remove the files of all outputs; return their names. Raises PublishError."""
        return [
            name
            for _, output in self._every
            for name in output.found(root)
            if output.is_ours(root.read_own(name) or b"") and root.remove(name)
        ]
