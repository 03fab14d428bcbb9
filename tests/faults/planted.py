"""Mistakes planted into a copy of the checkout: a driver that does not find them proves nothing.

Some come with a pause, so that a few kills are enough to show them and CI can ask for it.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

PACKAGES = ("shared", "webhook", "worker", "deploy")


class Mistake(NamedTuple):
    """A text in a file of the checkout and what it is replaced with; `shows` is a pattern of what
    the driver says of it, `kill` the kind of kill that brings it out.
    """

    file: str
    right: str
    wrong: str
    shows: str = ""
    kill: str = "publisher"


MISTAKES: Mapping[str, Mistake] = {
    # Events count as done when they are read: who dies before applying them loses them.
    "early-ack": Mistake(
        "shared/store/inbox/inbox.py",
        "        if not entries:\n            return [], frozenset(map(bytes.decode, paused))\n",
        "        if not entries:\n            return [], frozenset(map(bytes.decode, paused))\n"
        "        for ident, _ in entries:\n"
        "            self._client.xack(self._keys.inbox, GROUP, ident)\n"
        "        __import__('time').sleep(0.3)\n",
        r"\(c\)",
        "worker",
    ),
    # What comes in during a publish counts as published.
    "no-generation": Mistake(
        "shared/store/publishing/commit_publish.lua",
        "    if clean then\n      redis.call('ZREM', KEYS[2], each.shard)\n",
        "    if each.stored then\n      redis.call('ZREM', KEYS[2], each.shard)\n",
        r"\(c\)",
    ),
    # The index names versions that the shards have yet to reach.
    "index-first": Mistake(
        "worker/publishing/publisher.py",
        "        for shard, file in now.shards.items():\n",
        "        for file in now.indexes:\n            now.root.place(file)\n"
        "        __import__('time').sleep(0.05)\n"
        "        now = now._replace(indexes=[])\n"
        "        for shard, file in now.shards.items():\n",
        "is ahead|is not there",
    ),
    # Files are written where they stand: a reader sees halves.
    "in-place": Mistake(
        "worker/publishing/targets/web_root.py",
        "            os.rename(temp, name, src_dir_fd=self._fd, dst_dir_fd=self._fd)\n",
        "            new = open(f'{self.path}/{temp}', 'rb').read()\n"
        "            open(f'{self.path}/{name}', 'wb', 0).writelines([new[:2000], new[2000:]])\n"
        "            self._unlink(temp)\n",
        "is torn",
    ),
}

NEXT_SCHEMA = Mistake(
    "shared/events/event.py",
    "SCHEMA = 3\nEXTENDED_SCHEMA = 2\nPLAIN_SCHEMA = 1\n",
    "SCHEMA = 4\nEXTENDED_SCHEMA = 2\nPLAIN_SCHEMA = 4\n",
)
"""No mistake: the event schema of a next version (F21)."""


def checkout(place: Path, mistake: Mistake) -> Path:
    """A copy of this checkout in `place` with one mistake; ValueError if it has no such text."""
    here = Path(__file__).resolve().parents[2]
    for package in PACKAGES:
        shutil.copytree(here / package, place / package)
    path = place / mistake.file
    text = path.read_text()
    if text.count(mistake.right) != 1:
        raise ValueError(
            f"{mistake.file} holds {mistake.right!r} {text.count(mistake.right)} times"
        )
    path.write_text(text.replace(mistake.right, mistake.wrong))
    return place
