"""Random histories of three targets: events, two leading hosts, followers that lag, deaths at any
step, lost directories. No index names a missing file, and all end in the same bytes.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import redis
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from lxml import etree

from shared.config.sites.targets import HOST
from tests.integration.faults import CutError
from tests.integration.rig import BASE, Rig
from tests.integration.worker.explored import explore
from worker.publishing.followers.follower import Follower
from worker.publishing.targets.target import Target

HOSTS = ("web1", "web2")
NAMES = (*HOSTS, "more")
CHANGING = frozenset({"place", "remove", "mark", "sync"})
steps = st.integers(0, 8)


class Cut:
    """A target whose process dies before its operation number `steps` that changes files."""

    def __init__(self, behind: Target, steps: int) -> None:
        self._behind, self._left = behind, steps

    def __getattr__(self, name: str) -> Any:
        real = getattr(self._behind, name)
        if name not in CHANGING:
            return real

        def call(*arguments: Any) -> Any:
            self._left -= 1
            if self._left < 0:
                for staged in arguments if name == "place" else ():
                    staged.content.close()  # as the end of a process does
                raise CutError
            return real(*arguments)

        return call


def machine(  # noqa: C901  # one class
    store: redis.Redis, home: Path, patch: pytest.MonkeyPatch
) -> Any:
    class Histories(RuleBasedStateMachine):
        def __init__(self) -> None:
            super().__init__()
            store.flushall()
            shutil.rmtree(home, ignore_errors=True)
            home.mkdir()
            self.listed = set[str]()
            self.version = 0

        def rig(self, host: str) -> Rig:
            patch.setenv(HOST, host)
            targets = [{"url": str(home / name), "host": name} for name in HOSTS]
            targets.append({"url": str(home / "more"), "name": "more"})
            return Rig(
                store, home / host, targets=targets, shard_urls=2, index_shards=2,
                robots="create", feed=True, viewer=False, shrink_share=1,
            )  # fmt: skip

        def follower(self, name: str) -> Follower:
            rig = self.rig("web1")
            settings = next(each for each in rig.site.every_target if each.ident == name)
            return Follower(store, "demo", rig.site, settings, name)

        def dead(self) -> None:
            """Leases of dead processes run out."""
            for name in NAMES:
                store.delete(self.rig("web1").keys.target_lease(name))
            store.delete(self.rig("web1").keys.lease)

        @initialize()
        def begin(self) -> None:
            self.send([0, 1, 2, 3, 4], [])
            self.lead("web1")

        @rule(upserts=st.lists(st.integers(0, 7), max_size=3), deletes=st.lists(st.integers(0, 7)))
        def send(self, upserts: list[int], deletes: list[int]) -> None:
            self.version += 1
            items: list[dict[str, Any]] = [
                {"type": "upsert", "loc": f"p/{n}", "lastmod": f"{1990 + self.version % 30}-01-01"}
                for n in upserts
            ]
            items += [{"type": "delete", "loc": f"p/{n}"} for n in deletes]
            self.listed |= {f"{BASE}p/{n}" for n in upserts}
            self.listed -= {f"{BASE}p/{n}" for n in deletes}
            if items:
                self.rig("web1").send(*items)

        @rule(host=st.sampled_from(HOSTS))
        def lead(self, host: str) -> None:
            self.rig(host).settle()

        @rule(name=st.sampled_from(NAMES))
        def follow(self, name: str) -> None:
            while self.follower(name).tick():
                pass

        @rule(host=st.sampled_from(HOSTS), left=steps)
        def die_leading(self, host: str, left: int) -> None:
            pump = self.rig(host).pump()
            pump.apply_all()
            own: Any = pump.publisher
            own._ownership._open()
            own._ownership.root = Cut(own._ownership.root, left)
            try:
                own.publish()
            except CutError:
                self.dead()

        @rule(name=st.sampled_from(NAMES), left=steps)
        def die_following(self, name: str, left: int) -> None:
            follower: Any = self.follower(name)
            follower.ownership._open()
            follower.ownership.root = Cut(follower.ownership.root, left)
            try:
                follower.tick()
            except CutError:
                self.dead()

        @rule(name=st.sampled_from(NAMES))
        def lose(self, name: str) -> None:
            """A new disk; the index goes first, as somebody who cares would do it."""
            shutil.rmtree(home / name, ignore_errors=True)

        @invariant()
        def indexes_name_files(self) -> None:
            for name in NAMES:
                place = home / name
                for index in place.glob("sitemap*.xml"):
                    for loc in etree.parse(index).getroot().iter("{*}loc"):
                        named = loc.text.removeprefix(BASE)
                        assert (place / named).is_file(), (
                            f"{name}: {named} is named by {index.name}"
                        )

        def teardown(self) -> None:
            self.lead("web2")
            for name in NAMES:
                self.follow(name)
            found = {
                name: {
                    each.name: each.read_bytes()
                    for each in (home / name).iterdir()
                    if not each.name.startswith(".")
                }
                for name in NAMES
            }
            assert found["web1"] == found["web2"] == found["more"]
            rig = self.rig("web1")
            assert set(rig.listed()) == self.listed
            assert not list(rig.audit().verify())
            super().teardown()

    return Histories


def test_all_targets_end_in_the_same_bytes(
    store: redis.Redis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    explore(machine(store, tmp_path / "home", monkeypatch), examples=6, steps=12)
