"""Two masters for a moment, as a planned failover leaves: what the former published is lost."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from shared.store.connection import connect
from tests.faults.parts import until
from tests.integration.rig import BASE, Rig
from tests.scale.servers import SAFE, Server, Servers, free_ports, online_replicas, programs


class Three(Servers):
    """A master and two replicas."""

    def __init__(self, home: Path) -> None:
        ports = free_ports(3)
        follow = {"replicaof": f"127.0.0.1 {ports[0]}"}
        self.servers = [
            Server(home, f"redis-{n}", port, SAFE | (follow if n else {}), program=programs()[0])
            for n, port in enumerate(ports)
        ]


@pytest.fixture
def three(tmp_path: Path) -> Iterator[Three]:
    with Three(tmp_path) as running:
        until(lambda: online_replicas(running.servers[0]) == 2, "two replicas follow")
        yield running


def test_files_of_the_former_master_are_compared_and_publishing_goes_on(
    three: Three, tmp_path: Path
) -> None:
    former, promoted, _ = three.servers
    root = tmp_path / "public"
    with (
        closing(connect(f"redis://127.0.0.1:{former.port}", 2, 1)) as before,
        closing(connect(f"redis://127.0.0.1:{promoted.port}", 2, 1)) as after,
    ):
        old, new = Rig(before, root), Rig(after, root)
        old.do(_page("kept"))
        until(lambda: new.state.known_run().publishes == 1, "the replica has it")
        promoted.ask("REPLICAOF", "NO", "ONE")
        # The other replica confirms, and follows the promoted one a moment later.
        old.do(_page("lost"))
        assert old.listed().keys() == {f"{BASE}kept", f"{BASE}lost"}
        marked = (root / ".sitemapd").read_bytes()

        new.do(_page("next"))

        assert new.listed().keys() == {f"{BASE}kept", f"{BASE}next"}
        assert (root / ".sitemapd").read_bytes() != marked
        assert not list(new.audit().verify())
        new.do(_page("lost"))
        assert new.listed().keys() == {f"{BASE}{name}" for name in ("kept", "lost", "next")}


def _page(path: str) -> dict[str, str]:
    return {"type": "upsert", "loc": path, "section": "pages"}
