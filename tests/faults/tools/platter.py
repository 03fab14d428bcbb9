"""Files as programs see them, and what of them a power cut would leave (RELIABILITY F6, P14).

Each file has its bytes twice: as they are, and as its last fsync left them. Each directory has its
names twice: as they are, and as they are durable. Names become durable in one of two ways:

- not journalled, all that POSIX grants: by fsync of their directory, each directory for itself;
- journalled, as ext4 does: in the order in which they were changed, and with any fsync all of them.
  How much of the newest changes is in the journal by itself is for the cut to say: by default all,
  the worst case for a rename that comes before its file's fsync.

Bytes that were not synced are always lost, and so are mode, owner and mtime changed since then.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
import time
from dataclasses import dataclass, field, replace
from pathlib import Path

Names = dict[bytes, "Node"]


@dataclass
class Meta:
    """What stat tells besides the size."""

    mode: int
    uid: int
    gid: int
    atime: int
    mtime: int
    ctime: int


@dataclass(eq=False)
class Node:
    """An inode; `fd` of a file's bytes, `names` of a directory, `target` of a symbolic link."""

    ident: int
    meta: Meta
    fd: int = -1
    target: bytes = b""
    names: Names = field(default_factory=dict)
    links: int = 0
    lookups: int = 0
    saved_fd: int = -1
    saved_meta: Meta | None = None
    saved_names: Names = field(default_factory=dict)
    saved_links: int = 0
    dirty: list[tuple[int, int]] = field(default_factory=list)
    low: int | None = None  # the smallest size since the last fsync

    @property
    def is_directory(self) -> bool:
        return stat.S_ISDIR(self.meta.mode)

    def size(self) -> int:
        """In bytes."""
        return os.fstat(self.fd).st_size if self.fd >= 0 else len(self.target)

    def touch(self) -> None:
        """Its bytes have changed."""
        self.meta.mtime = self.meta.ctime = time.time_ns()

    def write(self, offset: int, data: bytes) -> int:
        """Write to the live bytes only."""
        written = os.pwrite(self.fd, data, offset)
        self._soil(offset, offset + written)
        self.touch()
        return written

    def truncate(self, size: int) -> None:
        """Cut or extend the live bytes only."""
        before = self.size()
        self.low = size if self.low is None else min(self.low, size)
        os.ftruncate(self.fd, size)
        if size > before:
            self._soil(before, size)
        self.touch()

    def _soil(self, start: int, end: int) -> None:
        if self.dirty and self.dirty[-1][0] <= start <= self.dirty[-1][1]:
            self.dirty[-1] = (self.dirty[-1][0], max(end, self.dirty[-1][1]))
        else:
            self.dirty.append((start, end))

    def save(self) -> None:
        """What fsync does: the bytes as they are now, and what stat tells, are durable."""
        self.saved_meta = replace(self.meta)
        if self.fd < 0:
            return
        size = self.size()
        if self.low is not None and self.low < os.fstat(self.saved_fd).st_size:
            os.ftruncate(self.saved_fd, self.low)
        for start, end in self.dirty:
            at, last = start, min(end, size)
            while at < last:
                at += os.pwrite(self.saved_fd, os.pread(self.fd, min(last - at, 1 << 20), at), at)
        os.ftruncate(self.saved_fd, size)
        self.dirty, self.low = [], None


def _blank() -> int:
    descriptor, name = tempfile.mkstemp(prefix="powercut-")
    os.unlink(name)
    return descriptor


Change = tuple[Node, bytes, Node | None]


class Platter:
    """A tree of nodes over the directory `path`, which is read now and written by `store` only."""

    def __init__(self, path: Path, *, journalled: bool) -> None:
        self._path, self._journalled = path, journalled
        self.nodes: dict[int, Node] = {}
        self._last = 0
        self._journal: list[list[Change]] = []
        self.root = self._load(path)
        self.root.links = self.root.saved_links = 1
        self.save_all()

    def _load(self, path: Path) -> Node:
        found = os.lstat(path)
        times = (found.st_atime_ns, found.st_mtime_ns, found.st_ctime_ns)
        node = self.make(Meta(found.st_mode, found.st_uid, found.st_gid, *times))
        if stat.S_ISLNK(found.st_mode):
            node.target = os.fsencode(os.readlink(path))
        elif stat.S_ISREG(found.st_mode):
            data = path.read_bytes()
            node.write(0, data)
            node.meta.mtime = found.st_mtime_ns
        elif node.is_directory:
            for name in os.listdir(path):
                child = self._load(path / name)
                node.names[os.fsencode(name)] = child
                child.links += 1
        return node

    def make(self, meta: Meta, target: bytes = b"") -> Node:
        """A new node without a name."""
        self._last += 1
        node = Node(self._last, meta, target=target)
        self.nodes[node.ident] = node
        if stat.S_ISREG(meta.mode):
            node.fd, node.saved_fd = _blank(), _blank()
        return node

    def change(self, *changes: Change) -> None:
        """Names that change together: (directory, name, its node or None for gone)."""
        for directory, name, node in changes:
            before = directory.names.pop(name, None)
            if node is not None:
                directory.names[name] = node
                node.links += 1
            if before is not None:
                before.links -= 1
                before.meta.ctime = time.time_ns()
            directory.touch()
        if self._journalled:
            self._journal.append(list(changes))

    def tidy(self, node: Node) -> None:
        """Forget a node that nobody can reach, neither now nor after a cut."""
        pending = any(each[2] is node for group in self._journal for each in group)
        if node.links or node.lookups or node.saved_links or pending:
            return
        if self.nodes.pop(node.ident, None) is not None and node.fd >= 0:
            os.close(node.fd)
            os.close(node.saved_fd)

    def sync(self, node: Node) -> None:
        """fsync of a file or a directory."""
        node.save()
        if self._journalled:
            self._commit(len(self._journal))
        elif node.is_directory:
            for name in node.saved_names.keys() | node.names.keys():
                self._save_name(node, name, node.names.get(name))

    def _commit(self, groups: int) -> None:
        done, self._journal = self._journal[:groups], self._journal[groups:]
        for group in done:
            for directory, name, node in group:
                self._save_name(directory, name, node)

    def _save_name(self, directory: Node, name: bytes, node: Node | None) -> None:
        before = directory.saved_names.pop(name, None)
        if node is not None:
            directory.saved_names[name] = node
            node.saved_links += 1
        if before is not None:
            before.saved_links -= 1
            self.tidy(before)

    def save_all(self) -> None:
        """As an orderly end does: everything is durable."""
        self._commit(len(self._journal))
        for node in list(self.nodes.values()):
            if node.ident not in self.nodes:
                continue  # went with a name that is gone
            node.save()
            for name in node.saved_names.keys() | node.names.keys():
                self._save_name(node, name, node.names.get(name))

    def store(self, tail: float = 1.0) -> None:
        """Leave in the directory what is durable, and that share of the newest changes of names."""
        self._commit(round(len(self._journal) * tail))
        for name in os.listdir(self._path):
            old = self._path / name
            if old.is_dir() and not old.is_symlink():
                shutil.rmtree(old)
            else:
                old.unlink()
        self._write(self.root, self._path)

    def _write(self, node: Node, path: Path) -> None:
        # A name can be durable before what it names: then the file is empty, mode as created.
        meta = node.saved_meta or node.meta
        kind = stat.S_IFMT(meta.mode)
        if kind == stat.S_IFDIR:
            path.mkdir(exist_ok=True)
            for name, child in node.saved_names.items():
                self._write(child, path / os.fsdecode(name))
        elif kind == stat.S_IFLNK:
            path.symlink_to(os.fsdecode(node.target))
            return
        elif kind == stat.S_IFREG:
            with open(path, "wb") as file:
                at = 0
                while data := os.pread(node.saved_fd, 1 << 20, at):
                    at += file.write(data)
        else:
            return  # a socket does not outlive its machine
        os.chmod(path, stat.S_IMODE(meta.mode))
        os.chown(path, meta.uid, meta.gid)
        os.utime(path, ns=(meta.atime, meta.mtime))
