"""Interface of a further output: files whose content follows from the state."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Sequence

from shared.sitemap.shards import Shard
from shared.store.publishing.publish_work import PublishedShard
from worker.publishing.shard_file import MergedShard
from worker.publishing.targets.target import Target


class Output(ABC):
    """One output of one site. Every method raises StoreError; those with a target, PublishError."""

    names: Sequence[str] = ()
    """Names of its files, besides those that `found` finds."""

    careful = False
    """True if others write files of these names by hand, which then stay."""

    @abstractmethod
    def record(self, published: Sequence[MergedShard]) -> None:
        """Record what the shards of a publish pass changed, once these are in their places."""

    def index(self, done: Sequence[PublishedShard]) -> None:  # noqa: B027
        """Take the index lines of a publish pass, which are stored after all is written."""

    @abstractmethod
    def contents(self, shards: Collection[Shard] | None = None) -> Iterable[tuple[str, bytes]]:
        """Return name and expected content of the output's files; of those that follow single
        shards only those of `shards`, if these are given.
        """

    def gone(self, root: Target, shards: Collection[Shard] | None) -> Iterable[str]:  # noqa: ARG002
        """Return the names of files in `root`, besides `names`, that `contents` of `shards`, which
        were just read, have no more.
        """
        return ()

    @abstractmethod
    def is_ours(self, content: bytes) -> bool:
        """Return True if `content` is a file of this output, or the beginning of one."""

    @abstractmethod
    def forget(self) -> None:
        """Delete what the store keeps for this output."""

    def shard_of(self, name: str) -> Shard | None:  # noqa: ARG002
        """Return the shard with which the file `name` is written; None if it goes with any."""
        return None

    def adopted(self) -> None:  # noqa: B027
        """Take note that the state is another than readers of the files have known."""

    def expected(self) -> Sequence[str]:
        """Return the names of `contents`."""
        return self.names

    def content(self, name: str) -> bytes | None:
        """Return the expected content of the file `name`; None if this output has none."""
        return dict(self.contents()).get(name) if name in self.names else None

    def found(self, root: Target) -> Sequence[str]:
        """Return the names of files in `root` that may be of this output."""
        return [name for name in self.names if root.look(name) is not None]
