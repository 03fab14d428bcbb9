"""What a failover loses: masters killed under load, every answer of the webhook in a ledger.

`python -m tests.scale.failover [KILLS [SET-UP ...]]` prints a row for each set-up.
"""

from __future__ import annotations

import json
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import NamedTuple, Self

import redis
from redis.crc import key_slot

from tests.faults import oracle
from tests.faults.deployment import Deployment, Options
from tests.faults.ledger import Ledger, lastmod_of
from tests.faults.parts import until
from tests.faults.traffic import Sender
from tests.scale.deployed import Scaled
from tests.scale.servers import Cluster, Server, Watched, is_online, programs

PACE_S = 0.004
LAG_S = 0.5
"""Seconds for which the replicas receive nothing before their master is killed, where they lag."""


class Loss(NamedTuple):
    """The outcome of one set-up: events acknowledged and refused (or unanswered), pages that the
    files show otherwise than acknowledged, the same after a reconcile but for those of translation
    groups, which only their sender knows, and the seconds from each kill until events are taken
    again.
    """

    name: str
    kills: int
    acked: int
    refused: int
    lost: int
    after_reconcile: int
    seconds: list[float]
    wrong: list[str]

    def __str__(self) -> str:
        slowest = max(self.seconds, default=0.0)
        return (
            f"{self.name}: {self.kills} kills, {self.acked} events answered 202, {self.refused} "
            f"not; lost {self.lost}, after a reconcile {self.after_reconcile}; goes on after "
            f"{min(self.seconds, default=0.0):.1f} to {slowest:.1f} s; wrong: {self.wrong[:3]}"
        )


class SetUp(NamedTuple):
    """One set-up: what keeps the state, what is confirmed, and whether the replicas lag."""

    store: Callable[[Path], Watched | Cluster] | None
    replicas: int = 0
    lag: bool = False


def _watched(home: Path) -> Watched:
    return Watched(home, programs()[-1])


def _cluster(home: Path) -> Cluster:
    # A replica that was started again is promoted, though it does not know how old its data is.
    return Cluster(home, programs()[0], {"cluster-replica-validity-factor": "0"})


SET_UPS: Mapping[str, SetUp] = {
    "single": SetUp(None),
    "sentinel": SetUp(_watched),
    "sentinel, replicas lag": SetUp(_watched, lag=True),
    "sentinel, wait_replicas = 1": SetUp(_watched, 1),
    "sentinel, wait_replicas = 1, replicas lag": SetUp(_watched, 1, lag=True),
    "cluster": SetUp(_cluster),
    "cluster, replicas lag": SetUp(_cluster, lag=True),
    "cluster, wait_replicas = 1": SetUp(_cluster, 1),
    "cluster, wait_replicas = 1, replicas lag": SetUp(_cluster, 1, lag=True),
}


def measure(name: str, kills: int) -> Loss:
    """Kill the master of one set-up so many times under load; return what was lost."""
    set_up, ledger = SET_UPS[name], Ledger()
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True)))
        store = stack.enter_context(set_up.store(home / "redis")) if set_up.store else None
        env = {"SITEMAPD_WAIT_REPLICAS": str(set_up.replicas)}
        if isinstance(store, Cluster):
            broker = stack.enter_context(_Broker(home / "broker"))
            env["SITEMAPD_BROKER_URL"] = broker.url
        system = stack.enter_context(
            Scaled(home / "home", store, env)
            if store
            else Deployment(home / "home", Options(env=env, timed=False))
        )
        senders = [Sender(system, ledger, n, PACE_S, ["delivery"]) for n in range(2)]
        for sender in senders:
            sender.start()
        seconds = [_kill(system, ledger, set_up) for _ in range(kills)]
        for sender in senders:
            sender.stop()
        for sender in senders:
            sender.join()
        return _verdict(name, system, ledger, seconds)


class _Broker:
    """The broker beside a cluster: one more server."""

    def __init__(self, home: Path) -> None:
        from tests.scale.servers import SAFE, free_ports

        self._server = Server(home, "broker", free_ports(1)[0], SAFE, program=programs()[0])
        self.url = f"redis://127.0.0.1:{self._server.port}/0"

    def __enter__(self) -> Self:
        self._server.wanted = True
        self._server.tend()
        until(self._server.answers, "the broker answers")
        return self

    def __exit__(self, *_: object) -> None:
        self._server.end(signal.SIGKILL)


def _kill(system: Deployment, ledger: Ledger, set_up: SetUp) -> float:
    """Kill the master of the site while events come; return the seconds until they are taken."""
    goal = ledger.acked + 200
    until(lambda: ledger.acked >= goal, "events are accepted", 60)
    if not isinstance(system, Scaled):
        system.parts["redis"].kill()
        return _goes_on(ledger)
    master, others = _master_of(system)
    if set_up.lag:
        _cut_off(master, others)
        time.sleep(LAG_S)
    master.kill()
    begun = time.monotonic()
    for other in others if set_up.lag else ():
        other.tend()
    if len(others) == set_up.replicas:  # the former master must confirm what the new one takes
        _replace(system, master)
    _goes_on(ledger)
    taken = time.monotonic() - begun
    _replace(system, master)
    until(lambda: _follows(master), "the former master follows", 60)
    return taken


def _cut_off(master: Server, replicas: list[Server]) -> None:
    """Kill all replicas at one point of their master's history: what one alone had confirmed is
    lost if another is promoted, and a sentinel cannot tell which of two that were started again has
    more. One that is only stopped reads afterwards what was sent to it meanwhile.
    """
    until(lambda: _stopped_alike(master, replicas), "the replicas have the same", 60)
    for each in replicas:
        each.kill()
    master.tell(signal.SIGCONT)


def _stopped_alike(master: Server, replicas: list[Server]) -> bool:
    """Stop `master`; let it go on unless its replicas have the same then."""
    master.tell(signal.SIGSTOP)
    twice = [
        each.ask("INFO", "replication")["slave_repl_offset"] for each in [*replicas, *replicas]
    ]
    if len(set(twice)) == 1:
        return True
    master.tell(signal.SIGCONT)
    return False


def _replace(system: Scaled, master: Server) -> None:
    """Start a killed master again once another has its place."""
    until(lambda: _another(system, master), "a replica was promoted", 60)
    master.tend()


def _goes_on(ledger: Ledger) -> float:
    acked, begun = ledger.acked, time.monotonic()
    until(lambda: ledger.acked > acked + 20, "events are taken again", 60)
    return time.monotonic() - begun


def _master_of(system: Scaled) -> tuple[Server, list[Server]]:
    store = system.store
    if isinstance(store, Watched):
        return store.master, [each for each in store.data if each is not store.master]
    master = store.owner(key_slot(b"demo"))
    found = master.ask("INFO", "replication")
    ports = {int(found[f"slave{n}"]["port"]) for n in range(int(found["connected_slaves"]))}
    return master, [each for each in store.servers if each.port in ports]


def _another(system: Scaled, former: Server) -> bool:
    with suppress(redis.RedisError, LookupError, StopIteration):
        return _master_of(system)[0] is not former
    return False


def _follows(server: Server) -> bool:
    with suppress(redis.RedisError):
        return is_online(server.port)
    return False


def _verdict(name: str, system: Deployment, ledger: Ledger, seconds: list[float]) -> Loss:
    wrong = []
    try:
        until(system.quiet, "all is published", 60, system.work)
    except TimeoutError as error:
        wrong = [str(error), *system.complaints()]
    lost = oracle.lost(system, ledger)
    if lost:
        truth = system.home / "truth.ndjson"
        truth.write_text(_truth(system, ledger))
        healed = system.command("reconcile", "--against", f"ndjson:{truth}", "--yes")
        kept = "their translation group" in healed.stdout
        wrong += [healed.stdout + healed.stderr] if healed.returncode and not kept else []
        with suppress(TimeoutError):
            until(system.quiet, "the repair is published", 60, system.work)
    verified = system.command("verify")
    wrong += [verified.stdout[-300:]] if verified.returncode else []
    left = ledger.counts["refused"] + ledger.counts["unknown"]
    return Loss(
        name, len(seconds), ledger.acked, left, len(lost),
        sum("group=''" in each for each in oracle.lost(system, ledger)), seconds, wrong,
    )  # fmt: skip


def _truth(system: Deployment, ledger: Ledger) -> str:
    """Every page as it was acknowledged, or as the files show it where both may be."""
    published = oracle.Files(system.root).lastmods
    wrong = {each.split(": acknowledged")[0] for each in ledger.lost(published)}
    pages = {loc: lastmod for loc, lastmod in published.items() if loc not in wrong}
    acked, _ = ledger.book()
    for loc in wrong & acked.keys():
        if not acked[loc].gone:
            pages[loc] = lastmod_of(acked[loc].version)
    return "".join(
        json.dumps({"loc": loc, "lastmod": lastmod, "section": _section(loc)}) + "\n"
        for loc, lastmod in pages.items()
    )


def _section(loc: str) -> str:
    first = loc.split("/")[3]
    return first if first in {"posts", "products", "seen", "inbox"} else "pages"


def main() -> None:
    """Print what each set-up loses."""
    kills, names = int((sys.argv[1:] or ["5"])[0]), sys.argv[2:] or list(SET_UPS)
    for name in names:
        print(measure(name, kills), flush=True)


if __name__ == "__main__":
    main()
