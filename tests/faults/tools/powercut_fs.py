"""The process behind a PowerCut: serves a Platter by FUSE, obeys lines on its standard input."""

from __future__ import annotations

import errno
import os
import resource
import stat
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyfuse3
import trio

from tests.faults.tools.platter import Meta, Node, Platter

_CACHED_S = 300.0  # every change comes through the kernel, so what it remembers is right


class Served(pyfuse3.Operations):
    """Every operation on the platter, or EIO after the cut. A file's handle is its inode."""

    enable_writeback_cache = False

    def __init__(self, platter: Platter) -> None:
        super().__init__()
        self.platter, self.cut = platter, False
        self._listings: dict[int, list[tuple[bytes, Node]]] = {}

    def _node(self, inode: int) -> Node:
        if self.cut:
            raise pyfuse3.FUSEError(errno.EIO)
        return self.platter.nodes[inode]

    def _child(self, parent: int, name: bytes) -> Node:
        found = self._node(parent).names.get(name)
        if found is None:
            raise pyfuse3.FUSEError(errno.ENOENT)
        return found

    def _told(self, node: Node, *, looked_up: bool = False) -> Any:
        told = pyfuse3.EntryAttributes()
        told.st_ino = node.ident
        told.st_mode, told.st_uid, told.st_gid = node.meta.mode, node.meta.uid, node.meta.gid
        told.st_size = node.size()
        told.st_nlink = node.links + 1 if node.is_directory else node.links
        told.st_blksize, told.st_blocks = 4096, (told.st_size + 511) // 512
        told.st_atime_ns, told.st_mtime_ns = node.meta.atime, node.meta.mtime
        told.st_ctime_ns = node.meta.ctime
        told.entry_timeout = told.attr_timeout = _CACHED_S
        node.lookups += looked_up
        return told

    def _make(self, parent: int, name: bytes, mode: int, ctx: Any, target: bytes = b"") -> Node:
        directory, now = self._node(parent), time.time_ns()
        if name in directory.names:
            raise pyfuse3.FUSEError(errno.EEXIST)
        mode &= ~ctx.umask
        node = self.platter.make(Meta(mode, ctx.uid, ctx.gid, now, now, now), target)
        self.platter.change((directory, name, node))
        return node

    async def lookup(self, parent_inode: int, name: bytes, ctx: Any) -> Any:
        return self._told(self._child(parent_inode, name), looked_up=True)

    async def forget(self, inode_list: Sequence[tuple[int, int]]) -> None:
        for inode, count in inode_list:
            if node := self.platter.nodes.get(inode):
                node.lookups -= count
                self.platter.tidy(node)

    async def getattr(self, inode: int, ctx: Any) -> Any:
        return self._told(self._node(inode))

    async def setattr(self, inode: int, attr: Any, fields: Any, fh: Any, ctx: Any) -> Any:
        node = self._node(inode)
        if fields.update_size:
            node.truncate(attr.st_size)
        if fields.update_mode:
            node.meta.mode = stat.S_IFMT(node.meta.mode) | stat.S_IMODE(attr.st_mode)
        if fields.update_uid:
            node.meta.uid = attr.st_uid
        if fields.update_gid:
            node.meta.gid = attr.st_gid
        if fields.update_atime:
            node.meta.atime = attr.st_atime_ns
        if fields.update_mtime:
            node.meta.mtime = attr.st_mtime_ns
        node.meta.ctime = time.time_ns()
        return self._told(node)

    async def mknod(self, parent_inode: int, name: bytes, mode: int, rdev: int, ctx: Any) -> Any:
        return self._told(self._make(parent_inode, name, mode, ctx), looked_up=True)

    async def mkdir(self, parent_inode: int, name: bytes, mode: int, ctx: Any) -> Any:
        node = self._make(parent_inode, name, stat.S_IFDIR | stat.S_IMODE(mode), ctx)
        return self._told(node, looked_up=True)

    async def symlink(self, parent_inode: int, name: bytes, target: bytes, ctx: Any) -> Any:
        node = self._make(parent_inode, name, stat.S_IFLNK | 0o777, ctx, target)
        return self._told(node, looked_up=True)

    async def readlink(self, inode: int, ctx: Any) -> bytes:
        return self._node(inode).target

    async def link(self, inode: int, new_parent_inode: int, new_name: bytes, ctx: Any) -> Any:
        node, directory = self._node(inode), self._node(new_parent_inode)
        if new_name in directory.names:
            raise pyfuse3.FUSEError(errno.EEXIST)
        self.platter.change((directory, new_name, node))
        return self._told(node, looked_up=True)

    async def unlink(self, parent_inode: int, name: bytes, ctx: Any) -> None:
        node = self._child(parent_inode, name)
        self.platter.change((self._node(parent_inode), name, None))
        self.platter.tidy(node)

    async def rmdir(self, parent_inode: int, name: bytes, ctx: Any) -> None:
        if self._child(parent_inode, name).names:
            raise pyfuse3.FUSEError(errno.ENOTEMPTY)
        await self.unlink(parent_inode, name, ctx)

    async def rename(
        self, parent_inode_old: int, name_old: bytes, parent_inode_new: int, name_new: bytes,
        flags: int, ctx: Any,
    ) -> None:  # fmt: skip
        node, goal = self._child(parent_inode_old, name_old), self._node(parent_inode_new)
        there = goal.names.get(name_new)
        if flags & ~pyfuse3.RENAME_NOREPLACE:
            raise pyfuse3.FUSEError(errno.EINVAL)
        if there is not None and flags & pyfuse3.RENAME_NOREPLACE:
            raise pyfuse3.FUSEError(errno.EEXIST)
        if there is not None and there.names:
            raise pyfuse3.FUSEError(errno.ENOTEMPTY)
        if there is node:
            return
        source = self._node(parent_inode_old)
        self.platter.change((goal, name_new, node), (source, name_old, None))
        if there is not None:
            self.platter.tidy(there)

    async def open(self, inode: int, flags: int, ctx: Any) -> Any:
        node = self._node(inode)
        if flags & os.O_TRUNC:
            node.truncate(0)
        return pyfuse3.FileInfo(fh=inode, keep_cache=True)

    async def create(self, parent_inode: int, name: bytes, mode: int, flags: int, ctx: Any) -> Any:
        node = self._make(parent_inode, name, stat.S_IFREG | stat.S_IMODE(mode), ctx)
        return pyfuse3.FileInfo(fh=node.ident), self._told(node, looked_up=True)

    async def read(self, fh: int, off: int, size: int) -> bytes:
        return os.pread(self._node(fh).fd, size, off)

    async def write(self, fh: int, off: int, buf: bytes) -> int:
        return self._node(fh).write(off, buf)

    async def fsync(self, fh: int, datasync: bool) -> None:
        self.platter.sync(self._node(fh))

    async def fsyncdir(self, fh: int, datasync: bool) -> None:
        self.platter.sync(self._node(fh))

    async def flush(self, fh: int) -> None:
        self._node(fh)

    async def release(self, fh: int) -> None:
        """The inode goes when the kernel forgets it."""

    async def opendir(self, inode: int, ctx: Any) -> int:
        self._node(inode)
        return inode

    async def releasedir(self, fh: int) -> None:
        self._listings.pop(fh, None)

    async def readdir(self, fh: int, start_id: int, token: Any) -> None:
        if start_id == 0:
            self._listings[fh] = list(self._node(fh).names.items())
        listing = self._listings.get(fh, [])
        for at in range(start_id, len(listing)):
            name, node = listing[at]
            if not pyfuse3.readdir_reply(token, name, self._told(node), at + 1):
                return
            node.lookups += 1

    async def statfs(self, ctx: Any) -> Any:
        self._node(pyfuse3.ROOT_INODE)
        told = pyfuse3.StatvfsData()
        told.f_bsize = told.f_frsize = 4096
        told.f_blocks = told.f_bfree = told.f_bavail = 1 << 24
        told.f_files = told.f_ffree = told.f_favail = 1 << 24
        told.f_namemax = 255
        return told

    async def access(self, inode: int, mode: int, ctx: Any) -> bool:
        return True


async def _obey(served: Served) -> None:
    """`cut TAIL`: from now on EIO, the platter is written; `save`: everything is durable first."""
    async with trio.lowlevel.FdStream(os.dup(0)) as lines:
        async for chunk in lines:
            for line in chunk.decode().splitlines():
                word, _, tail = line.partition(" ")
                if not served.cut:
                    if word == "save":
                        served.platter.save_all()
                    served.platter.store(float(tail or 1))
                served.cut |= word == "cut"
                print(word, flush=True)
    pyfuse3.terminate()


async def _serve(served: Served) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_obey, served)
        print("ready", flush=True)
        await pyfuse3.main()
        nursery.cancel_scope.cancel()


def main(mountpoint: str, path: str, kind: str) -> None:
    """Serve the directory `path` at `mountpoint` until unmounted or the input ends."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # two for each file
    served = Served(Platter(Path(path), journalled=kind == "journalled"))
    options = {*pyfuse3.default_options, "fsname=powercut", "allow_other"}
    pyfuse3.init(served, mountpoint, options)
    try:
        trio.run(_serve, served)
    finally:
        pyfuse3.close(unmount=False)


if __name__ == "__main__":
    main(*sys.argv[1:])
