"""What the tools need of this machine, in one place."""

from __future__ import annotations

import importlib.util
import os
import shutil
from pathlib import Path

# Program -> Debian package. In Debian 12, strace 6.1, nftables 1.0.6, iproute2 6.1, gcc 12.2.
PROGRAMS = {
    "strace": "strace",
    "cc": "gcc libc6-dev",
    "nft": "nftables",
    "ip": "iproute2",
    "tc": "iproute2",
    "nsenter": "util-linux",
    "chattr": "e2fsprogs",
    "mount": "mount",
    "umount": "mount",
    "redis-server": "redis-server",
    "nginx": "nginx-light",
}
# FUSE is a device, and a Python package (the extra `faults`) for which there are no wheels.
FUSE = "pyfuse3"
_FUSE_REMEDY = "apt-get install gcc pkg-config libfuse3-dev && pip install -e '.[faults]'"
_SBIN = "/usr/sbin:/sbin"  # not in everybody's PATH


class ToolError(Exception):
    """A fault could not be injected; nothing is known about the system under test."""


def program(name: str) -> str:
    """The path of a program; ToolError that names the package to install."""
    found = shutil.which(name) or shutil.which(name, path=_SBIN)
    if found is None:
        raise ToolError(f"{name} is not installed: apt-get install {PROGRAMS[name]}")
    return found


def missing(*names: str) -> list[str]:
    """What has to be done before `names` (all, without any) can be used; empty if nothing."""
    wanted = names or (*PROGRAMS, FUSE)
    packages = {
        package
        for name in wanted
        if name in PROGRAMS and not (shutil.which(name) or shutil.which(name, path=_SBIN))
        for package in PROGRAMS[name].split()
    }
    found = [f"apt-get install {' '.join(sorted(packages))}"] if packages else []
    if FUSE in wanted and importlib.util.find_spec(FUSE) is None:
        found.append(_FUSE_REMEDY)
    if FUSE in wanted and not Path("/dev/fuse").exists():
        found.append("modprobe fuse")
    return found


def root(what: str) -> None:
    """ToolError unless this process is root's."""
    if os.geteuid() != 0:
        raise ToolError(f"only root can {what}")
