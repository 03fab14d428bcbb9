"""Any history of events, faults and publishes leaves the files that the model says.

`SITEMAPD_EXAMPLES=1000` explores that many new histories; without it a fixed set is run.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import redis
from hypothesis import strategies as st
from hypothesis.stateful import (
    initialize,
    invariant,
    rule,
)

from shared.sitemap import fragments, shards
from shared.store.publishing.publish_work import PublishBatch
from tests.integration.faults import CutError, Files, Fuse, fused_client
from tests.integration.model import Bounds, Model
from tests.integration.rig import BASE, File, Rig
from tests.integration.senders import SECTIONS, Senders, plain, plain_page
from tests.integration.worker.explored import explore
from worker.publishing.targets.web_root import WebRoot
from worker.publishing.upkeep.shard_compaction import drain_emptiest

OPTIONS: dict[str, Any] = {
    "shard_urls": 7, "index_shards": 3, "robots": "create", "block_urls": 3, "block_size": 300,
    "file_size": fragments.OVERHEAD + 640,
    "sections": {"posts": {}, "n-a": {"shard_urls": 2}},
}  # fmt: skip


class Machine(Senders):
    """A worker and its faults behind those senders, a model beside it."""

    client: redis.Redis

    def __init__(self) -> None:
        super().__init__()
        self.client.flushall()
        # In memory where that can be: thousands of flushes are not what is tried here.
        memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        self.root = Path(tempfile.mkdtemp(prefix="sitemapd-machine-", dir=memory))
        self.rig = Rig(self.client, self.root, form=self.form, **OPTIONS)
        self.model = Model({name: _bounds(limit) for name, limit in self.rig.site.limits.items()})
        self.seen_batches = "-"
        self.before: dict[str, File] = {}
        self.lastmods: dict[str, str] = {}
        self.clean = True  # no crash since the files were looked at

    form = "xml"

    # What happens to the worker.

    @initialize(pages=st.integers(5, 30), posts=st.integers(0, 10))
    def site_in_use(self, pages: int, posts: int) -> None:
        self.burst(0, pages, "pages")
        self.burst(25, posts, "posts")
        for ident, slug in enumerate("abcd"):
            self.save_in_thecms_page(ident, slug, None)
        self.settle()

    @rule(consumer=st.sampled_from(("w1", "w2")))
    def work(self, consumer: str) -> None:
        self.rig.pump(consumer).run()
        self.clean = self.clean and self.rig.quiet()
        if self.clean:
            self._check()

    @rule()
    def settle(self) -> None:
        self.rig.settle(seconds=8)  # less than it takes a lease to run out
        self._check()

    @rule()
    def drain(self) -> None:
        """What is nearly empty is emptied into the tail, as upkeep does."""
        self.settle()
        drained = drain_emptiest(self.rig.pages, self.rig.state)
        assert self.model.drain() == (drained and (drained.section, drained.number))
        self.rig.settle()
        self._check()

    @rule()
    def apply_while_another_publishes(self) -> None:
        """Events are applied, and nothing can be published."""
        with self._lease("other:1", []):
            self.rig.pump().run()

    @rule()
    def another_publisher_dies(self) -> None:
        """It took what was applied and wrote nothing."""
        self.apply_while_another_publishes()
        with self._lease("other:2", self.rig.state.dirty()):
            self.clean = False

    @rule(page=plain, there=st.sampled_from(SECTIONS), back=st.sampled_from(SECTIONS))
    def wander(self, page: int, there: str, back: str) -> None:
        """A page changes its section and changes it again before anything is published.

        Back in another block of the same shard, it has the file written although no byte changes.
        """
        self.clean = False
        for section in (there, back):
            self._send(plain_page(page) | {"section": section} | self._next())
            self.apply_while_another_publishes()

    @rule(steps=st.integers(0, 120))
    def crash(self, steps: int) -> None:
        """The worker dies between two steps; its successor has the same name."""
        self._crash(Fuse(steps))

    @rule()
    def crash_at_every_file(self) -> None:
        """It dies at the first step on a file, the next one at the second, and so on."""
        for steps in range(200):
            if not self._crash(Fuse(files=steps)):
                break
            self.files_are_whole()

    def _crash(self, fuse: Fuse) -> bool:
        Files.fuse, self.clean = fuse, False
        client = fused_client(self.client, fuse)
        try:
            Rig(client, self.root, form=self.form, **OPTIONS).pump().run()
        except CutError:
            return True
        finally:
            Files.fuse = None
            client.connection_pool.disconnect()
        return False

    @rule(data=st.data())
    def lose_files(self, data: st.DataObject) -> None:
        """Somebody empties the web root. The next publish, of whatever shard, must put it right."""
        published = list(self.rig.state.files(SECTIONS))
        if published and data.draw(st.integers(0, 4)) == 0:
            self.clean = False
            for path in self.root.iterdir():
                path.unlink()
            self.rig.state.mark_dirty([data.draw(st.sampled_from(published))])

    # What must be true.

    @invariant()
    def the_model_keeps_up(self) -> None:
        """What was decided lately is not kept for ever."""
        self._follow()

    @invariant()
    def files_are_whole(self) -> None:
        """At any moment: whatever is there parses, and an index names only what is there."""
        for name, lines in self.rig.index().items():
            files = {shards.on_disk(url.removeprefix(BASE), self.form) for url in lines}
            assert files <= set(self.rig.files()), f"{name} names a file that is not there"
        for content in self.rig.shard_files().values():
            assert content.endswith(b"</urlset>\n")

    def teardown(self) -> None:
        try:
            self._deliver(self.late)
            self.rig.settle()
            self._check()
            listed = {loc for loc in self.rig.listed() if loc.startswith(f"{BASE}c/")}
            assert listed == {f"{BASE}c/{slug}" for slug in self.slugs}, "not what the CMS has"
        finally:
            shutil.rmtree(self.root)

    def _check(self) -> None:
        self._follow()
        if not self.clean:
            # The temporary file of a publisher that died between its commit and the marker waits
            # for the next process, or for the monitor, as there is nothing to publish.
            with closing(WebRoot(self.root)) as root:
                root.sweep()
        self.rig.check()
        files = self.rig.files()
        assert self.rig.shard_files() == self.model.files()
        index = {
            name: [url.removeprefix(BASE).split(".")[0] for url in lines]
            for name, lines in self.rig.index().items()
        }
        assert index == self.model.indexes(3)
        assert not [name for name in files if name.startswith(".")]
        self._check_steady(files)
        self.before, self.clean = files, True

    def _check_steady(self, files: dict[str, File]) -> None:
        """Only what had to change was written, and times never go back."""
        lastmods = {url: at for lines in self.rig.index().values() for url, at in lines.items()}
        for name in files.keys() & self.before.keys():
            old, new = self.before[name], files[name]
            if self.clean:
                assert (old.content == new.content) == (old.mtime_ns == new.mtime_ns), name
        for url in lastmods.keys() & self.lastmods.keys() if self.clean else ():
            name = shards.on_disk(url.removeprefix(BASE), self.form)
            changed = self.before[name].content != files[name].content
            assert (lastmods[url] > self.lastmods[url]) == changed, name
            assert lastmods[url] >= self.lastmods[url]
            assert not changed or lastmods[url] == _w3c(files[name].mtime_ns)
        self.lastmods = lastmods

    def _follow(self) -> None:
        """Tell the model what the worker read, in the batches in which it did."""
        for ident, batch in self.rig.decided(self.seen_batches):
            self.seen_batches = ident
            self.model.batch((self.sent[one[0]], _at(one[0])) for one in batch)

    @contextmanager
    def _lease(self, token: str, taken: list[shards.Shard]) -> Iterator[None]:
        rig = self.rig
        held = isinstance(rig.begin(token, taken), PublishBatch) if taken else rig.lease.take(token)
        try:
            yield
        finally:
            if held:
                rig.lease.release(token)


def _bounds(limit: shards.Limits) -> Bounds:
    return Bounds(limit.urls, limit.hard, limit.soft, limit.block_urls, limit.block_size)


def _w3c(mtime_ns: int) -> str:
    return datetime.fromtimestamp(mtime_ns // 10**9, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _at(ident: str) -> tuple[int, int]:
    ms, _, sequence = ident.partition("-")
    return int(ms), int(sequence)


@pytest.mark.timeout(0)
@pytest.mark.parametrize(("form", "examples"), [("xml", 30), ("xml.gz", 10), ("encoded", 10)])
def test_any_history_leaves_the_files_that_the_model_says(
    store: redis.Redis, form: str, examples: int
) -> None:
    class OfThisForm(Machine):
        client = store

    OfThisForm.form = form
    explore(OfThisForm, examples=examples, steps=40)
