"""Restore the state in a backup to a Redis: all of a site in one step, or nothing.

The keys are restored beside the site's, under `{site}~<token>:`, and one script renames them. If
the process is killed before that, the site is unchanged; the next restore removes the copies and
begins anew.

Workers must not run: they cache the numbers of sections, which differ in another state.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from typing import Any

import redis
from redis.exceptions import NoPermissionError

from deploy.backups.archive import Backup
from deploy.backups.rdb import payload
from shared.batches import batches
from shared.errors import BackupError, StoreError
from shared.store.client import Scripts, answering
from shared.store.inbox.inbox import Inbox
from shared.store.keys import keys_of
from shared.store.operations.worker_registry import HEARTBEAT, HEARTBEAT_S
from shared.store.pages.amendments import Amendments

BATCH_BYTES = 4 * 1024 * 1024
BATCH_KEYS = 500

_MOST = 512 * 1024 * 1024
"""Largest size of one argument in bytes: `proto-max-bulk-len`."""


class Restore:
    """One restore of `sites` from `backup`."""

    def __init__(self, client: redis.Redis, backup: Backup, sites: Sequence[str]) -> None:
        self._client, self._backup, self._sites = client, backup, sites
        self._token = secrets.token_hex(8)
        self._scripts = Scripts(client)

    def run(
        self, *, replace: bool, alone: bool, seen: Callable[[int], None] = lambda _: None
    ) -> dict[str, int]:
        """Restore, and return the number of keys by site; `replace` allows overwriting a present
        state.

        `alone`: no worker can use this server, so leftover heartbeats are ignored. `seen` is called
        with the number of keys restored. Raises BackupError, StoreError.
        """
        self._refuse_at_work(alone=alone)
        if not replace:
            for site in self._sites:
                self._refuse_held(site)
        for site in self._sites:
            self._begin(site)
        self._copy(seen)
        self._refuse_at_work(alone=alone)
        return {site: self._swap(site, replace=replace) for site in self._sites}

    def _refuse_at_work(self, *, alone: bool) -> None:
        if alone:
            return
        with answering():
            found = [name.decode() for name in self._client.scan_iter(HEARTBEAT + "*", 10_000)]
        if found:
            names = ", ".join(name.removeprefix(HEARTBEAT) for name in found)
            raise BackupError(
                f"workers are at it ({names}): stop `sitemapd up`, or the workers, first; one that "
                f"was killed counts for {HEARTBEAT_S} s more"
            )

    def _refuse_held(self, site: str) -> None:
        with answering():
            if next(self._client.scan_iter(keys_of(site).prefix + "*", 10_000), None) is None:
                return
            urls: Any = self._client.hget(keys_of(site).counters, "urls")
        raise _held(site, int(urls or 0), Inbox(self._client, site).waiting())

    def _begin(self, site: str) -> None:
        """Remove the keys of a killed restore, and mark this one as running."""
        with answering():
            for names in batches(self._client.scan_iter(_beside(site) + "*", 10_000), 1000):
                self._client.unlink(*names)
            self._client.set(_mark(site), self._token)

    def _copy(self, seen: Callable[[int], None]) -> None:
        """Restore every key beside the site's."""
        waiting, size = 0, 0
        pipe = self._client.pipeline(transaction=False)
        for site, key in self._backup.keys(self._sites):
            data = payload(key.value)
            if len(data) > _MOST:
                raise BackupError(f"{key.name!r} is too big for one RESTORE: {len(data)} bytes")
            name = self._staged(site).encode() + key.name[len(keys_of(site).prefix) :]
            # A key that has expired since the backup is accepted and expires at once.
            pipe.restore(name, key.expires_ms, data, absttl=bool(key.expires_ms))
            waiting, size = waiting + 1, size + len(data)
            if waiting >= BATCH_KEYS or size > BATCH_BYTES:
                self._send(pipe)
                seen(waiting)
                waiting, size = 0, 0
        self._send(pipe)
        seen(waiting)

    def _send(self, pipe: Any) -> None:
        try:
            with answering():
                pipe.execute()
        except StoreError as error:
            if not isinstance(error.__cause__, NoPermissionError):
                raise
            # The message of Redis shows the bytes of the key.
            raise BackupError(
                "this user of Redis may not restore: allow it with `ACL SETUSER <user> +restore` "
                "(or in the file of users) for as long as it takes, or name another in redis_url"
            ) from None

    def _swap(self, site: str, *, replace: bool) -> int:
        keys = keys_of(site)
        count = int(
            self._scripts(
                "operations/swap_restored", [_mark(site)],
                self._token, keys.prefix, self._staged(site), int(replace),
            )
        )  # fmt: skip
        if count == -1:
            raise BackupError(f"another restore of {site} has taken over: nothing was changed")
        if count == -2:
            self._refuse_held(site)
        Amendments(self._client, site).tell_groups_again()
        return count

    def _staged(self, site: str) -> str:
        return f"{_beside(site)}{self._token}:"


def _beside(site: str) -> str:
    """Return the prefix of the keys of `site` that are not in their place yet."""
    return f"{{{site}}}~"


def _mark(site: str) -> str:
    return _beside(site) + "restore"


def _held(site: str, urls: int, waiting: int) -> BackupError:
    return BackupError(
        f"the server holds a state of {site} ({urls} URLs, {waiting} events waiting): "
        "--replace puts the backup in its place, and what it holds is lost"
    )
