"""State of each target of a site: its publishes, its files in doubt, its lag and its failure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import redis

from shared.clock import now_ms
from shared.store.client import PipelinedScript, Scripts, answering
from shared.store.keys import LEASE_MS, keys_of
from shared.store.leases import Lease
from shared.store.publishing.publish_work import Commit, PublishRun, index_lines
from shared.store.round_trips import Reading, pairs, read
from shared.store.servers.replica_wait import commit_scripts

INDEX = "index:"
"""Prefix of an index file among the names of files; all others are shards."""


class TargetRecord(NamedTuple):
    """Record of one target: the number of `publishes` that it has (-1: none is known).

    `behind_ms` and `failing_ms` say since when that is so (ms since 1970), 0 if it is not.
    """

    publishes: int = -1
    at_ms: int = 0
    behind_ms: int = 0
    failing_ms: int = 0
    reason: str = ""


class TargetChanges(NamedTuple):
    """Changes that a target lacks, at one moment `at_ms`.

    `changed` are the files that differ since its last pass, with `whole` all of them; `doubts` are
    those that must be compared. `lines` are those of the index files among both.
    """

    run: PublishRun
    at_ms: int
    whole: bool
    changed: list[str]
    doubts: set[str]
    lines: dict[int, dict[int, bytes]]


class TargetState:
    """State of one target of a site, and its lease: whoever holds it may write the target."""

    def __init__(self, client: redis.Redis, site: str, name: str, consumer: str) -> None:
        self._client, self._keys, self._scripts = client, keys_of(site), Scripts(client)
        self._commits = commit_scripts(client)
        self.name, self._doubts = name, self._keys.target(name)
        self._lease = Lease(client, self._keys.target_lease(name), consumer, LEASE_MS)

    def take(self) -> bool:
        """Take the lease of the target; False if another process is writing it."""
        return self._lease.take()

    def release(self) -> None:
        """Release the lease, if it is still held."""
        self._lease.release()

    def behind(self) -> int:
        """Return by how many publishes the target is behind; 0 if it has all, and none in doubt."""
        record, publishes, doubts = read(self._client, self._behind())
        return max(publishes - record.publishes, int(doubts > 0)) if record else publishes + 1

    def _behind(self) -> Reading[tuple[TargetRecord | None, int, int]]:
        stored, publishes, doubts = yield (
            ("HGET", self._keys.targets, self.name),
            ("HGET", self._keys.counters, "publishes"),
            ("HLEN", self._doubts),
        )
        return _record(stored) if stored else None, int(publishes or 0), int(doubts)

    def changes(self, per_index: int) -> TargetChanges:
        """Return what the target lacks."""
        keys = self._keys
        used = [keys.counters, keys.versions, self._doubts, keys.targets]
        ident, publishes, at, whole, changed, doubts, lines = self._scripts(
            "targets/read_changes", used, keys.prefix, self.name, per_index
        )
        return TargetChanges(
            PublishRun(ident.decode(), int(publishes)), int(at), bool(whole),
            [each.decode() for each in changed], {each.decode() for each in doubts},
            {int(page): index_lines(pairs(of).items()) for page, of in pairs(lines).items()},
        )  # fmt: skip

    def doubt(self, names: Sequence[str] = ()) -> bool:
        """Extend the lease, and note that the files `names` are about to be written; False if the
        lease was lost.
        """
        used, token = [self._lease.key, self._doubts], self._lease.token
        return bool(self._scripts("targets/doubt_files", used, token, LEASE_MS, *names))

    def mistrust(self, names: Iterable[str]) -> None:
        """Have the next pass compare the files `names`."""
        if marks := [part for name in names for part in (name, "1")]:
            with answering():
                self._client.hset(self._doubts, items=marks)

    def forget(self) -> None:
        """Have the next pass compare all files."""
        with answering():
            self._client.hdel(self._keys.targets, self.name)

    def complete(self, changes: TargetChanges, done: Sequence[str]) -> Commit:
        """Record that the target has what `changes` says, and release the lease; no publishes if it
        was lost.
        """
        keys = self._keys
        used = [self._lease.key, self._doubts, keys.targets, keys.counters]
        given = [
            self._lease.token,
            self.name,
            str(changes.run.publishes),
            str(changes.at_ms),
            *done,
        ]
        script = PipelinedScript("targets/complete_target", used, tuple(given))
        reply, confirmed, history = self._commits.commit(script)
        return Commit(changes.run.publishes if reply else 0, confirmed, history)

    def failed(self, reason: str) -> bool:
        """Record that the target cannot be written; False if just that was known."""
        field = f"{self.name} failing"
        with answering():
            stored: Any = self._client.hget(self._keys.targets, field)
            since, _, known = (stored or b"").decode(errors="replace").partition(" ")
            if known == reason:
                return False
            self._client.hset(self._keys.targets, field, f"{since or now_ms()} {reason}")
        return True


def records_reading(site: str) -> Reading[dict[str, TargetRecord]]:
    """Return the Reading of what is known of every target of `site`, by name."""
    (stored,) = yield (("HGETALL", keys_of(site).targets),)
    return records_of(pairs(stored))


def records_of(stored: Mapping[bytes, bytes]) -> dict[str, TargetRecord]:
    """Return what is known of every target, from the stored hash."""
    found = dict[str, TargetRecord]()
    for field, value in stored.items():
        name, _, what = field.decode(errors="replace").partition(" ")
        record, text = found.get(name, TargetRecord()), value.decode(errors="replace")
        since, _, reason = text.partition(" ")
        if not what:
            record = record._replace(publishes=_number(since, -1), at_ms=_number(reason))
        elif what == "failing":
            record = record._replace(failing_ms=_number(since), reason=reason)
        else:
            record = record._replace(behind_ms=_number(since))
        found[name] = record
    return found


def _record(stored: bytes) -> TargetRecord:
    publishes, _, at = stored.decode(errors="replace").partition(" ")
    return TargetRecord(_number(publishes, -1), _number(at))


def _number(text: str, otherwise: int = 0) -> int:
    return int(text) if text.isascii() and text.isdigit() else otherwise
