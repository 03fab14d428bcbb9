"""Migration of a site's state from one layout to another, by steps of bounded work.

While it is moved, `counters.form` names both layouts: no worker applies or publishes, and accepted
events wait in the inbox, which every layout has. A step that was taken can be taken again, so a
migration that was killed goes on, or back, from wherever it ended.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Protocol

import redis

from shared.errors import LayoutError
from shared.store.client import Scripts
from shared.store.keys import LEASE_MS, keys_of
from shared.store.layouts import section_keys, shared_keys
from shared.store.layouts.version import CURRENT, FORM, OLDEST, Layout, layout_reading
from shared.store.round_trips import gathered, read


class LayoutChange(Protocol):
    """Way from layout `FROM` to the next one, `TO`, and back: a module of this package."""

    FROM: int
    TO: int

    def steps(self, client: redis.Redis, site: str, /) -> Iterator[list[tuple[str, str]]]:
        """Yield the older and the newer name of the keys of each step, moved or not."""

    def count(self, client: redis.Redis, site: str, /) -> int:
        """Return about how many keys these are."""

    def at_end(self, *, back: bool) -> Mapping[str, str]:
        """Return the fields of `counters` to be set as the migration ends."""

    def obstacle(self, client: redis.Redis, site: str, /) -> str:
        """Return why the site cannot be moved back; empty if it can."""

    def left_behind(self, client: redis.Redis, site: str, /) -> list[str]:
        """Return what the older layout does not know of and would lose, in words."""


_CHANGES: tuple[LayoutChange, ...] = (section_keys,)
CHANGES = {each.FROM: each for each in _CHANGES}
"""The change that leads from each layout to the next one."""
LOCK_MS = 10_000
"""Time for which the right to migrate outlives a process that was killed; each step extends it."""
_PAUSE_S = 0.05


class MigrationBusyError(LayoutError):
    """Another process migrates or publishes the site; try again."""


class Migration:
    """The migration of one site."""

    def __init__(self, client: redis.Redis, site: str, owner: str) -> None:
        """`owner` is the process that migrates, as others are told."""
        self._client, self._site, self._keys = client, site, keys_of(site)
        self._scripts = Scripts(client)
        self._token = f"{owner}:{secrets.token_hex(8)}"

    def layout(self) -> Layout:
        """Return the layout of the site."""
        return layouts(self._client, [self._site])[self._site]

    def count(self) -> int:
        """Return about how many keys are to be moved."""
        return CHANGES[CURRENT - 1].count(self._client, self._site)

    def run(self, seen: Callable[[int], None] = lambda _: None) -> int:
        """Move the state to the current layout; return the number of keys that were moved, 0 if it
        has it. `seen` is called with the number of keys of each step.

        Raises LayoutError, MigrationBusyError among them.
        """
        moved = 0
        while not (layout := self.layout()).current:
            if not layout.older:
                raise layout.refusal(self._site)
            assert layout.stored is not None
            moved += self._change(layout, min(layout.stored, layout.to or layout.stored), seen)
        return moved

    def back(self, seen: Callable[[int], None] = lambda _: None) -> int:
        """Move the state back to the layout before the current one, where it stays until `run`;
        return the number of keys that were moved. Raises LayoutError as `run`, and if the older
        layout cannot hold this state.
        """
        layout = self.layout()
        if layout.stored is None or (layout.to is None and layout.stored < CURRENT):
            return 0
        if layout.stored > CURRENT or (layout.to or 0) > CURRENT:
            raise layout.refusal(self._site)
        older = CURRENT - 1 if layout.to is None else min(layout.stored, layout.to)
        if why := CHANGES[older].obstacle(self._client, self._site):
            raise LayoutError(f"{self._site} cannot be moved back to layout {older}: {why}")
        return self._change(layout, older, seen, back=True)

    def left_behind(self) -> list[str]:
        """Return what the layout before the current one would lose, in words."""
        return CHANGES[CURRENT - 1].left_behind(self._client, self._site)

    def _change(
        self, layout: Layout, older: int, seen: Callable[[int], None], *, back: bool = False
    ) -> int:
        change = CHANGES[older]
        ends = (change.TO, change.FROM) if back else (change.FROM, change.TO)
        if not back and (names := shared_keys.writers(self._client)):
            raise MigrationBusyError(
                f"workers of the version before still run: {', '.join(names)}; stop them, then "
                f"{self._site} is moved to layout {change.TO}"
            )
        self._begin(layout, ends, back=back)
        moved = 0
        for moves in change.steps(self._client, self._site):
            pairs = [pair[::-1] if back else pair for pair in moves]
            moved += self._step([name for pair in pairs for name in pair])
            seen(len(pairs))
        fields = {FORM: str(ends[1]), **change.at_end(back=back)}
        named = [part for pair in fields.items() for part in pair]
        keys = [self._keys.migrating, self._keys.counters]
        if not self._scripts("layouts/end_migration", keys, self._token, *named):
            raise self._lost()
        return moved

    def _begin(self, layout: Layout, ends: tuple[int, int], *, back: bool) -> None:
        """Close the site; wait for a publisher that has it."""
        keys, until = self._keys, time.monotonic() + 1.5 * LEASE_MS / 1000
        form = f"{layout.stored}" + (f">{layout.to}" if layout.to else "")
        moving, numbering = f"{ends[0]}>{ends[1]}", secrets.token_hex(8)
        used = [keys.migrating, keys.counters, keys.lease]
        args = (self._token, LOCK_MS, form, moving, numbering, "1" if back else "")
        while True:
            said = self._scripts("layouts/begin_migration", used, *args).decode()
            if said == "begun":
                return
            if said != "publishing":
                break
            if time.monotonic() > until:
                raise MigrationBusyError(f"{self._site} is being published: try again")
            time.sleep(_PAUSE_S)
        who = "another process" if said == "changed" else said.rpartition(":")[0]
        raise MigrationBusyError(f"{who} is migrating {self._site} already")

    def _step(self, names: Sequence[str]) -> int:
        if not names:
            return 0
        moved = int(
            self._scripts("layouts/move_keys", [self._keys.migrating], self._token, LOCK_MS, *names)
        )
        if moved < 0:
            raise self._lost()
        return moved

    def _lost(self) -> LayoutError:
        return MigrationBusyError(f"another process has begun to migrate {self._site}; try again")


def layouts(client: redis.Redis, sites: Iterable[str]) -> dict[str, Layout]:
    """Return the layout of each site, in one round trip."""
    names = list(sites)
    found = read(client, gathered(layout_reading(keys_of(name)) for name in names))
    return dict(zip(names, found, strict=True))


def move_shared(client: redis.Redis, found: Mapping[str, Layout]) -> None:
    """Move the keys that belong to no site where those of the sites `found` are by now: to the
    older names only if all of these have the older layout.
    """
    older = [each for each in found.values() if each.stored == OLDEST and each.to is None]
    shared_keys.move_shared(client, back=bool(found) and len(older) == len(found))
