"""Files in object storage: S3 and what speaks its protocol, Google Cloud, Azure.

An object is replaced by one request, as a whole, so nothing is staged beside it and a reader sees
the old bytes or the new ones. The request names the version that it replaces (If-Match, or
If-None-Match for a new one): a publisher that lost its lease is refused where another has written.
Two promises of a directory are the store's own here: when bytes are durable, and `Last-Modified`.
A removal cannot name a version; what it may take away wrongly comes back with the next pass.
"""

from __future__ import annotations

import errno
import hashlib
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from shared.config import filenames
from shared.config.filenames import MARKER
from shared.errors import OvertakenError, PublishError, UnwritableError
from shared.sitemap import feed_writer, shards
from shared.store.publishing.publish_work import PublishRun
from worker.publishing.targets.target import FileState, Piece, StagedFile, Target
from worker.publishing.targets.web_root import marker_of

if TYPE_CHECKING:
    from obstore.store import ObjectStore

MOST_SAID = 300
"""Characters of an error of the storage that are shown."""

_TYPES = {
    "xml": "application/xml", "gz": "application/gzip", "txt": "text/plain; charset=utf-8",
    "css": "text/css; charset=utf-8", "html": "text/html; charset=utf-8",
}  # fmt: skip
_PLAIN = {*feed_writer.NAMES, *shards.CHANGE_LIST_FILES}
_DATED = "lastmod"


class ObjectStorage(Target):
    """The objects of one site below a prefix of a bucket.

    With `encoded`, a shard file `posts-1.xml.gz` is the object `posts-1.xml` with the
    Content-Encoding gzip, as web servers serve it. A file of the form xml.gz has none: it is a gzip
    file, as its name says, and clients must not get it decoded.
    """

    def __init__(
        self, store: ObjectStore, address: str, *, cache_control: str, encoded: bool
    ) -> None:
        self._store, self.address = store, address
        self._cached, self._encoded = cache_control, encoded
        self._left: PublishRun | None = None
        self._tags = dict[str, tuple[str, int]]()  # by key, with the mtime: as we wrote it

    def stands(self) -> bool:
        """Return True: a bucket is not replaced by a deployment."""
        return True

    def is_of(self, run: PublishRun) -> bool:
        """Return True if this process made the last publish of `run`.

        The marker itself is read by others and every few seconds (web_root_watch.py): one request
        less in each pass.
        """
        if self._left is not None and self._left[:2] == run[:2]:
            return True
        self._tags.clear()  # others have written since
        return False

    def accept(self, run: PublishRun) -> None:
        """Take the run marker as that of `run`."""
        self._left = run

    def mark(self, run: PublishRun) -> bool:
        """Mark the files as those of `run`, without a condition: its commit is the last."""
        if not self.continues(run):
            self._left = None
            return False
        self.accept(run)
        with self._refusals(f"write {MARKER}"):
            self._put(MARKER, marker_of(run), "overwrite", 0)
        return True

    def close(self) -> None:
        """Do nothing: connections are shared and kept."""

    def stage(
        self, name: str, pieces: Sequence[Piece], *, since: int = 0, dated: int = 0
    ) -> StagedFile:
        """Keep `pieces` in memory until they are placed: 64 MiB at most in one pass. Raises
        UnwritableError if no object can have that name.
        """
        if not filenames.possible(name):
            raise UnwritableError(f"{name!a} is no name of a file that is published")
        if self._hidden(name):
            raise UnwritableError(f"{name} is the object of {name}.gz")
        known = self._tags.get(self._key(name))
        before = known[0] if known else self._tag(name)
        mtime = dated or max(int(time.time()), since)
        return StagedFile("", name, mtime, before, b"".join(pieces))

    def place(self, staged: StagedFile) -> None:
        """Write the object, if it is still that one which was there when it was staged."""
        assert not isinstance(staged.before, tuple)
        mode: Any = {"e_tag": staged.before} if staged.before else "create"
        with self._refusals(f"replace {staged.name}"):
            tag = self._put(staged.name, staged.content, mode, staged.mtime)
        if tag:
            self._tags[self._key(staged.name)] = tag, staged.mtime

    def flush(self, staged: StagedFile) -> None:
        """Do nothing: the object is not written before it is placed."""

    def discard(self, staged: Collection[StagedFile]) -> None:
        """Do nothing: nothing was written."""

    def mtime(self, name: str) -> int:
        """Return the mtime that `place` gave the file; that of the storage for another's."""
        if known := self._tags.get(self._key(name)):
            return known[1]
        found = self._get(name, head=True)
        if found is None:
            return 0
        given = str(found.attributes.get(_DATED, ""))
        return int(given) if given.isascii() and given.isdigit() else _seconds(found.meta)

    def look(self, name: str) -> FileState | None:
        """Return the state of `name`; its tag stands for an inode."""
        found = self._get(name, head=True)
        return None if found is None else _state(found.meta)

    def look_at(self, names: Iterable[str]) -> dict[str, FileState | None]:
        """Return `look` of many names: one request for a thousand objects."""
        found = {meta["path"]: _state(meta) for meta in self._listed()}
        return {name: None if self._hidden(name) else found.get(self._key(name)) for name in names}

    def sync(self) -> None:
        """Do nothing: a request that was answered is durable."""

    def remove(self, name: str) -> bool:
        """Remove `name`; return True if it existed."""
        import obstore

        if self._hidden(name) or self._get(name, head=True) is None:
            return False
        with self._refusals(f"remove {name}"):
            obstore.delete(self._store, self._key(name))
        self._tags.pop(self._key(name), None)
        return True

    def read(self, name: str) -> bytes | None:
        """Return the bytes of `name`, None if it does not exist."""
        found = self._get(name)
        if found is None:
            return None
        with self._refusals(f"read {name}"):
            return bytes(found.bytes())

    def read_own(self, name: str) -> bytes | None:
        """Return the bytes of `name`; other than a directory, a bucket that refuses to be read
        refuses everything.
        """
        return self.read(name)

    def names(self) -> list[str]:
        """Return all names directly below the prefix."""
        return [self._name(meta["path"]) for meta in self._listed()]

    def sweep(self, older_s: float = 0) -> None:
        """Do nothing: there are no temporary files."""

    def _key(self, name: str) -> str:
        if "/" in name or name in {"", ".", ".."}:
            raise UnwritableError(f"{name!a} is no name of a file in the bucket")
        return name.removesuffix(".gz") if self._encoded and name.endswith(".xml.gz") else name

    def _hidden(self, name: str) -> bool:
        """Return True for the name whose object holds the encoded file of that name."""
        shard = name.endswith(".xml") and name not in _PLAIN and not filenames.is_index(name)
        return self._encoded and shard

    def _name(self, key: str) -> str:
        return f"{key}.gz" if self._hidden(key) else key

    def _listed(self) -> Iterator[Any]:
        import obstore

        with self._refusals("list the bucket"):
            for some in obstore.list(self._store):
                yield from (meta for meta in some if "/" not in meta["path"])

    def _tag(self, name: str) -> str | None:
        found = self._get(name, head=True)
        return None if found is None else found.meta["e_tag"]

    def _get(self, name: str, *, head: bool = False) -> Any:
        import obstore

        if self._hidden(name):
            return None
        with self._refusals(f"read {name}"):
            try:
                return obstore.get(self._store, self._key(name), options={"head": head})
            except FileNotFoundError:
                return None

    def _put(self, name: str, content: bytes, mode: Any, mtime: int) -> str | None:
        import obstore

        key = self._key(name)
        given: Any = {"Content-Type": _TYPES.get(key.rpartition(".")[2], _TYPES["txt"])}
        given |= {"Cache-Control": self._cached} if self._cached else {}
        given |= {"Content-Encoding": "gzip"} if key != name else {}
        given |= {_DATED: str(mtime)}
        # In one request: the parts of several would be no single replacement.
        done = obstore.put(
            self._store, key, content, attributes=given, mode=mode, use_multipart=False
        )
        return done["e_tag"]

    @contextmanager
    def _refusals(self, what: str) -> Iterator[None]:
        """Raise PublishError for an error of the storage, and forget the known tags."""
        from obstore import exceptions

        try:
            yield
        except (exceptions.AlreadyExistsError, exceptions.PreconditionError) as error:
            self._tags.clear()
            raise OvertakenError(f"cannot {what}: another wrote it meanwhile") from error
        except FileNotFoundError as error:  # removed meanwhile, or no such bucket
            self._tags.clear()
            raise PublishError(f"cannot {what}: {_first(error)}; the old files stay") from error
        except (exceptions.PermissionDeniedError, exceptions.UnauthenticatedError) as error:
            self._tags.clear()
            denied = PermissionError(errno.EACCES, "denied")
            raise PublishError(f"cannot {what}: {_first(error)}; the old files stay") from denied
        except (exceptions.BaseError, OSError) as error:
            self._tags.clear()
            raise PublishError(f"cannot {what}: {_first(error)}; the old files stay") from None


def _first(error: Exception) -> str:
    """Return the first line of an error, which is followed by pages of its inner structure."""
    said = str(error).partition("Debug source:")[0]
    return " ".join(said.split())[:MOST_SAID].rstrip("; ") or type(error).__name__


def _seconds(meta: Any) -> int:
    return int(meta["last_modified"].timestamp())


def _state(meta: Any) -> FileState:
    tag = hashlib.blake2b(f"{meta['e_tag']}".encode(), digest_size=8).digest()
    at = _seconds(meta) * 10**9
    return FileState(int.from_bytes(tag, "big"), meta["size"], at, at)
