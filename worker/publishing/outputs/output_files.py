"""Files of the further outputs of a site: written after its sitemap, compared, and removed when
they are switched off.

A site without any loads none of their modules.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import redis

from shared.config.sites.site import Site
from shared.errors import PublishError
from shared.sitemap.shards import Shard
from shared.store.publishing.publish_work import PublishedShard
from shared.store.targets.target_state import TargetChanges
from shared.telemetry.logs import logger
from worker.publishing.targets.target import Target

if TYPE_CHECKING:
    from worker.publishing.outputs.output import Output
    from worker.publishing.shard_file import MergedShard

MOST_NAMED, _STEP_S = 100, 1.0

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
        from worker.publishing.outputs.hosts_index import HostsIndex
        from worker.publishing.outputs.html_pages import HtmlPages
        from worker.publishing.outputs.llms_file import LlmsFile

        of, outputs = (self._client, self._name, self._site), self._site.outputs
        return [
            (outputs.change_list, ChangeListFiles(*of)),
            (outputs.llms, LlmsFile(*of)),
            (outputs.html, HtmlPages(*of)),
            (bool(outputs.hosts), HostsIndex(*of)),
        ]

    def publish(
        self, root: Target, done: Sequence[PublishedShard], merged: Sequence[MergedShard],
        progress: Callable[[], None], *, again: bool,
    ) -> list[str]:  # fmt: skip
        """Record what a publish pass changed, by the `merged` shards that are `done`, and write
        what differs; with `again` also remove what is off. Returns the names written. `progress`
        is called every second.

        Raises StoreError, PublishError.
        """
        placed = {each.taken.shard for each in done if not each.held}
        published = [each for each in merged if each.taken.shard in placed]
        for output in self._on:
            output.record(published)
            output.index(done)
        for on, output in self._every if again else ():
            if not on:
                output.forget()
        return self.write(root, placed, progress, tidy=again)

    def write(
        self, root: Target, shards: Collection[Shard] | None, progress: Callable[[], None],
        *, tidy: bool = False,
    ) -> list[str]:  # fmt: skip
        """Write the files that follow `shards` (None: all) and differ, remove those that list
        nothing any more, and with `tidy` those of outputs that are off; return the names written.
        What the system refuses to write is logged.

        Raises StoreError, PublishError.
        """
        written, unwanted = list[str](), [*self._unwanted(root)] if tidy else []
        due = time.monotonic() + _STEP_S
        for output in self._on:
            names = {*output.names}
            for name, content in output.contents(shards):
                names.discard(name)
                if self._written(root, output, name, content):
                    written.append(name)
                if time.monotonic() > due:
                    progress()
                    due = time.monotonic() + _STEP_S
            unwanted += self._ours(root, output, [*names, *output.gone(root, shards)])
        removed = [name for name in unwanted if root.remove(name)]
        if removed:
            root.sync()
            _log.info("files of outputs removed", site=self._name, files=removed[:MOST_NAMED])
        return written

    def follow(
        self, root: Target, changes: TargetChanges, progress: Callable[[], None]
    ) -> list[str]:
        """Write what a target lacks; return the names written. Raises StoreError, PublishError."""
        named = {*changes.changed, *changes.doubts}
        shards = {shard for name in named if (shard := Shard.read(name.encode()))}
        return self.write(root, None if changes.whole else shards, progress, tidy=changes.whole)

    def _written(self, root: Target, output: Output, name: str, content: bytes) -> bool:
        try:
            if not self._fault(root, output, name, content):
                return False
            self._replace(root, name, content)
        except PublishError as error:
            _log.error("file not replaced", site=self._name, file=name, reason=str(error))
            return False
        return True

    @property
    def _on(self) -> Iterator[Output]:
        return (output for on, output in self._every if on) if self.on else iter(())

    def _fault(self, root: Target, output: Output, name: str, content: bytes) -> str:
        """Return `missing` or `differs`; empty if the file is right, or another's that stays."""
        found = root.read(name)
        if found is None:
            return "missing"
        if found == content or (output.careful and not output.is_ours(found)):
            return ""
        return "differs"

    def _ours(self, root: Target, output: Output, names: Iterable[str]) -> Iterator[str]:
        return (name for name in names if output.is_ours(root.read_own(name) or b""))

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
            if not on:
                yield from self._ours(root, output, output.found(root))

    def faults(self, root: Target) -> Iterator[tuple[str, str]]:
        """Yield the name and `missing`, `differs` or `unwanted` of each file that is not right.

        Raises StoreError, PublishError.
        """
        for output in self._on:
            known = set[str]()
            for name, content in output.contents():
                known.add(name)
                if fault := self._fault(root, output, name, content):
                    yield name, fault
            for name in self._ours(root, output, sorted({*output.found(root)} - known)):
                yield name, "unwanted"
        for name in self._unwanted(root):
            yield name, "unwanted"

    def names(self) -> list[str]:
        """Return the names of the files that may be there. Raises StoreError."""
        return [name for output in self._on for name in output.expected()]

    def fault(self, root: Target, name: str) -> str | None:
        """Return `missing` or `differs` for the file `name`, one of `names`; None if it is right.

        Raises StoreError, PublishError.
        """
        for output in self._on:
            expected = output.content(name)
            if expected is not None:
                return self._fault(root, output, name, expected) or None
        return None

    def shard_of(self, name: str) -> Shard | None:
        """Return the shard with which the file `name` is written; None if it goes with any."""
        return next((shard for output in self._on if (shard := output.shard_of(name))), None)

    def adopted(self) -> None:
        """Take note that the state is another than readers of the files have known. Raises
        StoreError.
        """
        for output in self._on:
            output.adopted()

    def remove(self, root: Target) -> list[str]:
        """Remove the files of all outputs; return their names. Raises PublishError."""
        return [
            name
            for _, output in self._every
            for name in [*self._ours(root, output, output.found(root))]
            if root.remove(name)
        ]
